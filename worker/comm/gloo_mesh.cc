#include "worker/comm/gloo_mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_copy.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

namespace transport = ::gloo::transport;

// Gloo waits five times its timeout for a first connection.
constexpr int kConnectFactor = 5;
constexpr absl::Duration kWaitMin = absl::Milliseconds(1);

// Rounded up, so that a wait that took all of it ends after its deadline.
std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return std::chrono::milliseconds(
      absl::ToInt64Milliseconds(absl::Ceil(std::max(duration, kWaitMin), absl::Milliseconds(1))));
}

// What Gloo says of a failure has file names and line numbers in front.
std::string Reason(const std::exception& error) {
  const std::string text = error.what();
  const size_t begin = text.find("] ");
  return begin == std::string::npos ? text : text.substr(begin + 2);
}

class GlooMesh final : public Mesh {
 public:
  GlooMesh(std::shared_ptr<transport::Device> device, std::shared_ptr<transport::Context> context,
           std::vector<std::string> names, Clock& clock)
      : device_(std::move(device)),
        context_(std::move(context)),
        names_(std::move(names)),
        clock_(clock),
        exchanges_(names_.size(), 0) {}

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  absl::Status Exchange(int peer, absl::Span<const uint8_t> send, absl::Span<uint8_t> receive,
                        absl::Time deadline) override {
    LH_CHECK(peer >= 0 && peer < size() && peer != rank(), "peer ", peer, " of ", size());
    const uint64_t slot = exchanges_[peer]++;
    Buffers buffers;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!ended_.ok()) return OwnCopy(ended_);
      current_ = &buffers;
    }
    absl::Status status = Move(peer, slot, send, receive, deadline, buffers);
    std::lock_guard<std::mutex> lock(mutex_);
    current_ = nullptr;
    if (!ended_.ok()) return OwnCopy(ended_);
    if (!status.ok()) ended_ = OwnCopy(status);
    return status;
  }

  void Cancel(const absl::Status& reason) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = OwnCopy(reason);
    if (current_ == nullptr) return;
    if (current_->send != nullptr) current_->send->abortWaitSend();
    if (current_->receive != nullptr) current_->receive->abortWaitRecv();
  }

 private:
  // Of the exchange under way. A buffer that is destroyed waits until Gloo's thread has let go of
  // its memory.
  struct Buffers {
    std::unique_ptr<transport::UnboundBuffer> send, receive;
  };

  // Sets a buffer where Cancel can find it; false if it has come already.
  bool Publish(std::unique_ptr<transport::UnboundBuffer>& place, absl::Span<uint8_t> bytes) {
    auto buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    std::lock_guard<std::mutex> lock(mutex_);
    place = std::move(buffer);
    return ended_.ok();
  }

  absl::Status Move(int peer, uint64_t slot, absl::Span<const uint8_t> send,
                    absl::Span<uint8_t> receive, absl::Time deadline, Buffers& buffers) {
    try {
      // Gloo takes sources as it takes destinations, and does not write to them.
      const absl::Span<uint8_t> source(const_cast<uint8_t*>(send.data()), send.size());
      if (!receive.empty()) {
        if (!Publish(buffers.receive, receive)) return absl::CancelledError("");
        buffers.receive->recv(peer, slot);
      }
      if (!send.empty()) {
        if (!Publish(buffers.send, source)) return absl::CancelledError("");
        buffers.send->send(peer, slot);
      }
      const auto left = [&] { return Milliseconds(deadline - clock_.Now()); };
      if (!send.empty() && !buffers.send->waitSend(left())) return absl::CancelledError("");
      if (!receive.empty() && !buffers.receive->waitRecv(left())) return absl::CancelledError("");
      return absl::OkStatus();
    } catch (const std::exception& error) {
      const bool late = clock_.Now() >= deadline;
      const std::string text =
          absl::StrCat(names_[peer], late ? " did not come in time: " : ": ", Reason(error));
      return late ? absl::DeadlineExceededError(text) : absl::UnavailableError(text);
    }
  }

  const std::shared_ptr<transport::Device> device_;
  const std::shared_ptr<transport::Context> context_;
  const std::vector<std::string> names_;
  Clock& clock_;
  std::vector<uint64_t> exchanges_;  // by peer, so far: names a message on both ends
  std::mutex mutex_;
  absl::Status ended_;          // guarded by mutex_; by an error or Cancel
  Buffers* current_ = nullptr;  // guarded by mutex_; the places in it too
};

class TcpRendezvous final : public GlooRendezvous {
 public:
  TcpRendezvous(const GlooOptions& options, Clock& clock) : options_(options), clock_(clock) {}

  // Gloo throws.
  void Open() {
    transport::tcp::attr attributes;
    attributes.hostname = options_.host;
    device_ = transport::tcp::CreateDevice(attributes);
    const int size = static_cast<int>(options_.names.size());
    context_ = device_->createContext(options_.rank, size);
    context_->setTimeout(Milliseconds(options_.connect_max / kConnectFactor));
    for (int peer = 0; peer < size; ++peer) {
      if (peer == options_.rank) continue;
      const std::vector<char> address = context_->createPair(peer)->address().bytes();
      address_bytes_ = address.size();
      rendezvous_.append(address.begin(), address.end());
    }
    LH_CHECK(rendezvous_.size() <= kRendezvousBytesMax, rendezvous_.size(), " bytes");
  }

  const std::string& rendezvous() const override { return rendezvous_; }

  absl::StatusOr<std::unique_ptr<Mesh>> Connect(
      const std::vector<std::string>& rendezvous) override {
    const int size = context_->size;
    if (rendezvous.size() != static_cast<size_t>(size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rendezvous of ", rendezvous.size(), " replicas instead of ", size));
    }
    for (int peer = 0; peer < size; ++peer) {
      if (peer == context_->rank) continue;
      LH_ASSIGN_OR_RETURN(const std::vector<char> address, AddressIn(rendezvous[peer], peer));
      try {
        context_->getPair(peer)->connect(address);
      } catch (const std::exception& error) {
        return absl::UnavailableError(
            absl::StrCat("no connection with ", options_.names[peer], ": ", Reason(error)));
      }
    }
    return std::make_unique<GlooMesh>(device_, context_, options_.names, clock_);
  }

  void Cancel() override {
    for (int peer = 0; peer < context_->size; ++peer) {
      if (peer != context_->rank) context_->getPair(peer)->close();
    }
  }

 private:
  // Where `peer` listens for this rank: it has an address for each rank but its own.
  absl::StatusOr<std::vector<char>> AddressIn(const std::string& rendezvous, int peer) const {
    const std::string& name = options_.names[peer];
    if (rendezvous.size() != rendezvous_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the rendezvous of ", name, " has ",
                                                     rendezvous.size(), " bytes instead of ",
                                                     rendezvous_.size()));
    }
    const int place = context_->rank < peer ? context_->rank : context_->rank - 1;
    const auto begin = rendezvous.begin() + place * static_cast<int64_t>(address_bytes_);
    std::vector<char> bytes(begin, begin + static_cast<int64_t>(address_bytes_));
    try {
      const int family = transport::tcp::Address(bytes).getSockaddr().ss_family;
      if (family == AF_INET || family == AF_INET6) return bytes;
    } catch (const std::exception& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rendezvous of ", name, ": ", Reason(error)));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the rendezvous of ", name, " has no internet address"));
  }

  const GlooOptions options_;
  Clock& clock_;
  std::shared_ptr<transport::Device> device_;
  std::shared_ptr<transport::Context> context_;
  std::string rendezvous_;
  size_t address_bytes_ = 0;  // of one peer in a rendezvous
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlooRendezvous>> GlooRendezvous::Listen(const GlooOptions& options,
                                                                       Clock& clock) {
  const int size = static_cast<int>(options.names.size());
  if (size < 2 || size > kReplicasMax || options.rank < 0 || options.rank >= size) {
    return absl::InvalidArgumentError(absl::StrCat("replica ", options.rank, " of ", size,
                                                   "; a stage has at most ", kReplicasMax));
  }
  auto rendezvous = std::make_unique<TcpRendezvous>(options, clock);
  try {
    rendezvous->Open();
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat(options.names[options.rank], " cannot listen on ",
                                               options.host, " for its replicas: ", Reason(error)));
  }
  return rendezvous;
}

}  // namespace longhaul::worker
