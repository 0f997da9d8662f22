#include "worker/comm/testing/in_process_mesh.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_copy.h"

namespace longhaul::worker {
namespace {

// What all ranks share.
struct Wires {
  std::mutex mutex;
  std::condition_variable changed;
  // By sender and receiver: messages under way. Guarded by mutex, as what follows.
  std::map<std::pair<int, int>, std::deque<std::vector<uint8_t>>> under_way;
  std::set<int> gone;
  std::map<int, absl::Status> cancelled;  // by rank
};

class InProcessMesh final : public Mesh {
 public:
  InProcessMesh(int rank, int size, std::shared_ptr<Wires> wires, Clock& clock)
      : rank_(rank), size_(size), wires_(std::move(wires)), clock_(clock) {}
  ~InProcessMesh() override {
    std::lock_guard<std::mutex> lock(wires_->mutex);
    wires_->gone.insert(rank_);
    wires_->changed.notify_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Exchange(int peer, absl::Span<const uint8_t> send, absl::Span<uint8_t> receive,
                        absl::Time deadline) override {
    LH_CHECK(peer >= 0 && peer < size_ && peer != rank_, "peer ", peer, " of ", size_);
    std::unique_lock<std::mutex> lock(wires_->mutex);
    if (!send.empty()) {
      wires_->under_way[{rank_, peer}].emplace_back(send.begin(), send.end());
      wires_->changed.notify_all();
    }
    auto& incoming = wires_->under_way[{peer, rank_}];
    const auto ended = [&] {
      return wires_->cancelled.contains(rank_) || wires_->gone.contains(peer);
    };
    const bool waited = clock_.WaitUntil(lock, wires_->changed, deadline, [&] {
      return receive.empty() || !incoming.empty() || ended();
    });
    if (const auto reason = wires_->cancelled.find(rank_); reason != wires_->cancelled.end()) {
      return OwnCopy(reason->second);
    }
    if (!waited) {
      return absl::DeadlineExceededError(absl::StrCat("replica ", peer, " did not come in time"));
    }
    if (receive.empty()) return absl::OkStatus();
    if (incoming.empty()) return absl::UnavailableError(absl::StrCat("replica ", peer, " is gone"));
    LH_CHECK(incoming.front().size() == receive.size(), incoming.front().size(), " bytes for ",
             receive.size());
    std::copy(incoming.front().begin(), incoming.front().end(), receive.begin());
    incoming.pop_front();
    return absl::OkStatus();
  }

  void Cancel(const absl::Status& reason) override {
    std::lock_guard<std::mutex> lock(wires_->mutex);
    wires_->cancelled.emplace(rank_, OwnCopy(reason));
    wires_->changed.notify_all();
  }

 private:
  const int rank_, size_;
  const std::shared_ptr<Wires> wires_;
  Clock& clock_;
};

}  // namespace

std::vector<std::unique_ptr<Mesh>> MakeInProcessMeshes(int size, Clock& clock) {
  const auto wires = std::make_shared<Wires>();
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (int rank = 0; rank < size; ++rank) {
    meshes.push_back(std::make_unique<InProcessMesh>(rank, size, wires, clock));
  }
  return meshes;
}

}  // namespace longhaul::worker
