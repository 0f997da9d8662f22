#include "worker/comm/collective.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

template <typename T>
absl::Span<const uint8_t> Bytes(absl::Span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
absl::Span<uint8_t> MutableBytes(absl::Span<T> values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

class TreeCollective final : public Collective {
 public:
  TreeCollective(std::unique_ptr<Mesh> mesh, size_t piece_max)
      : mesh_(std::move(mesh)), piece_max_(piece_max) {
    LH_CHECK(mesh_->size() >= 1 && mesh_->rank() >= 0 && mesh_->rank() < mesh_->size());
    while (2 * power_ <= mesh_->size()) power_ *= 2;
  }

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }

  absl::Status AllReduceSum(absl::Span<float> values, absl::Time deadline) override {
    for (size_t begin = 0; begin < values.size(); begin += piece_max_) {
      LH_RETURN_IF_ERROR(Sum(values.subspan(begin, piece_max_), floats_, deadline));
    }
    return absl::OkStatus();
  }
  absl::Status SumDoubles(absl::Span<double> values, absl::Time deadline) override {
    return Sum(values, doubles_, deadline);
  }
  absl::Status Broadcast(absl::Span<float> values, absl::Time deadline) override {
    for (size_t begin = 0; begin < values.size(); begin += piece_max_) {
      LH_RETURN_IF_ERROR(FromFirst(MutableBytes(values.subspan(begin, piece_max_)), deadline));
    }
    return absl::OkStatus();
  }
  absl::Status BroadcastDoubles(absl::Span<double> values, absl::Time deadline) override {
    return FromFirst(MutableBytes(values), deadline);
  }
  void Cancel(const absl::Status& reason) override { mesh_->Cancel(reason); }

 private:
  // The part of the values that this rank still works on, and how it was cut.
  struct Cut {
    int partner = 0;
    size_t begin = 0, middle = 0, end = 0;
    bool lower = false;  // this rank keeps the lower half
  };

  // Sends `send`, receives as many values as `into` has and adds them to it. A sum of two does not
  // depend on which comes first, so both partners of a halving add in the tree's order.
  template <typename T>
  absl::Status ExchangeAndAdd(int peer, absl::Span<const T> send, absl::Span<T> into,
                              std::vector<T>& scratch, absl::Time deadline) {
    if (scratch.size() < into.size()) scratch.resize(into.size());
    const absl::Span<T> received = absl::MakeSpan(scratch).first(into.size());
    LH_RETURN_IF_ERROR(mesh_->Exchange(peer, Bytes(send), MutableBytes(received), deadline));
    for (size_t i = 0; i < into.size(); ++i) into[i] += received[i];
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Sum(absl::Span<T> values, std::vector<T>& scratch, absl::Time deadline) {
    const int folded = rank() + power_;  // the rank that is added to this one first
    if (rank() >= power_) {
      const int peer = rank() - power_;
      LH_RETURN_IF_ERROR(mesh_->Exchange(peer, Bytes<T>(values), {}, deadline));
      return mesh_->Exchange(peer, {}, MutableBytes(values), deadline);
    }
    if (folded < size()) {
      LH_RETURN_IF_ERROR(ExchangeAndAdd<T>(folded, {}, values, scratch, deadline));
    }
    LH_RETURN_IF_ERROR(SumPower(values, scratch, deadline));
    if (folded >= size()) return absl::OkStatus();
    return mesh_->Exchange(folded, Bytes<T>(values), {}, deadline);
  }

  // Over the first power_ ranks.
  template <typename T>
  absl::Status SumPower(absl::Span<T> values, std::vector<T>& scratch, absl::Time deadline) {
    std::vector<Cut> cuts;
    size_t begin = 0, end = values.size();
    for (int distance = 1; distance < power_; distance *= 2) {
      const Cut cut{rank() ^ distance, begin, begin + (end - begin) / 2, end,
                    (rank() & distance) == 0};
      const absl::Span<T> low = values.subspan(cut.begin, cut.middle - cut.begin);
      const absl::Span<T> high = values.subspan(cut.middle, cut.end - cut.middle);
      LH_RETURN_IF_ERROR(ExchangeAndAdd<T>(cut.partner, cut.lower ? high : low,
                                           cut.lower ? low : high, scratch, deadline));
      (cut.lower ? end : begin) = cut.middle;
      cuts.push_back(cut);
    }
    for (; !cuts.empty(); cuts.pop_back()) {
      const Cut& cut = cuts.back();
      const absl::Span<T> low = values.subspan(cut.begin, cut.middle - cut.begin);
      const absl::Span<T> high = values.subspan(cut.middle, cut.end - cut.middle);
      LH_RETURN_IF_ERROR(mesh_->Exchange(cut.partner, Bytes<T>(cut.lower ? low : high),
                                         MutableBytes(cut.lower ? high : low), deadline));
    }
    return absl::OkStatus();
  }

  // Down a binomial tree: a rank gets it from the rank without its highest bit.
  absl::Status FromFirst(absl::Span<uint8_t> bytes, absl::Time deadline) {
    int highest = 0;  // bit of this rank; 0: it is rank 0
    for (int bit = 1; bit <= rank(); bit *= 2) {
      if ((rank() & bit) != 0) highest = bit;
    }
    if (highest != 0) {
      LH_RETURN_IF_ERROR(mesh_->Exchange(rank() - highest, {}, bytes, deadline));
    }
    for (int bit = highest == 0 ? 1 : 2 * highest; rank() + bit < size(); bit *= 2) {
      LH_RETURN_IF_ERROR(mesh_->Exchange(rank() + bit, bytes, {}, deadline));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Mesh> mesh_;
  const size_t piece_max_;
  int power_ = 1;              // the largest power of two that is at most size()
  std::vector<float> floats_;  // scratch, as large as the largest part received so far
  std::vector<double> doubles_;
};

}  // namespace

std::unique_ptr<Collective> MakeCollective(std::unique_ptr<Mesh> mesh, size_t piece_max) {
  LH_CHECK(piece_max > 0);
  return std::make_unique<TreeCollective>(std::move(mesh), piece_max);
}

}  // namespace longhaul::worker
