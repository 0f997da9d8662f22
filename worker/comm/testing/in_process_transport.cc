#include "worker/comm/testing/in_process_transport.h"

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/comm/testing/in_process_pipe.h"

namespace longhaul::worker {

class InProcessNetwork::Impl {
 public:
  explicit Impl(Clock& clock) : clock_(clock) {}
  ~Impl() {
    std::vector<std::string> addresses;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [address, host] : hosts_) addresses.push_back(address);
    }
    for (const std::string& address : addresses) Stop(address);
  }

  void Listen(const std::string& address, StreamAcceptor* acceptor) {
    std::lock_guard<std::mutex> lock(mutex_);
    hosts_[address].acceptor = acceptor;
  }

  void Stop(const std::string& address) {
    std::list<Served> served;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      hosts_[address].acceptor = nullptr;
      served.swap(hosts_[address].served);
    }
    for (Served& stream : served) stream.pipe->Break(absl::UnavailableError("the host stopped"));
    for (Served& stream : served) stream.thread.join();
  }

  void Break(const std::string& address) {
    std::lock_guard<std::mutex> lock(mutex_);
    BreakLocked(hosts_[address], "the stream was broken");
  }

  void BreakAfter(const std::string& address, int messages) {
    std::lock_guard<std::mutex> lock(mutex_);
    hosts_[address].break_after = messages;
  }

  void Partition(const std::string& address, bool partitioned) {
    std::lock_guard<std::mutex> lock(mutex_);
    hosts_[address].partitioned = partitioned;
    if (partitioned) BreakLocked(hosts_[address], "the network is partitioned");
  }

  absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                     const std::string& address,
                                                     absl::Time deadline) {
    std::lock_guard<std::mutex> lock(mutex_);
    Host& host = hosts_[address];
    if (host.partitioned || host.acceptor == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot reach ", node, " at ", address, ": ",
                       host.partitioned ? "the network is partitioned" : "nothing listens there"));
    }
    // A refusal takes no time; what is answered must be in time.
    if (clock_.Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no time left to reach ", node, " at ", address));
    }
    JoinFinished(host);
    auto pipe = std::make_shared<InProcessPipe>(std::exchange(host.break_after, std::nullopt));
    Served& served = host.served.emplace_back();
    served.pipe = pipe;
    served.thread = std::thread([acceptor = host.acceptor, pipe, finished = served.finished] {
      const std::unique_ptr<ServerStream> stream = MakeInProcessServerStream(pipe, "in-process");
      pipe->Finish(acceptor->Serve(*stream));
      finished->store(true);
    });
    return MakeInProcessClientStream(std::move(pipe));
  }

 private:
  struct Served {
    std::shared_ptr<InProcessPipe> pipe;
    std::shared_ptr<std::atomic<bool>> finished = std::make_shared<std::atomic<bool>>(false);
    std::thread thread;
  };
  struct Host {
    StreamAcceptor* acceptor = nullptr;
    bool partitioned = false;
    std::optional<int> break_after;
    std::list<Served> served;
  };

  static void BreakLocked(Host& host, const char* reason) {
    for (Served& served : host.served) served.pipe->Break(absl::UnavailableError(reason));
  }

  static void JoinFinished(Host& host) {
    for (auto served = host.served.begin(); served != host.served.end();) {
      if (!served->finished->load()) {
        ++served;
        continue;
      }
      served->thread.join();
      served = host.served.erase(served);
    }
  }

  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Host> hosts_;  // guarded by mutex_
};

namespace {

template <typename Network>
class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(Network& network) : network_(network) {}
  absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                     const std::string& address,
                                                     absl::Time deadline) override {
    return network_.Dial(node, address, deadline);
  }

 private:
  Network& network_;
};

}  // namespace

InProcessNetwork::InProcessNetwork(Clock& clock) : impl_(std::make_unique<Impl>(clock)) {}
InProcessNetwork::~InProcessNetwork() = default;

void InProcessNetwork::Listen(const std::string& address, StreamAcceptor* acceptor) {
  impl_->Listen(address, acceptor);
}
void InProcessNetwork::Stop(const std::string& address) { impl_->Stop(address); }
void InProcessNetwork::Break(const std::string& address) { impl_->Break(address); }
void InProcessNetwork::BreakAfter(const std::string& address, int messages) {
  impl_->BreakAfter(address, messages);
}
void InProcessNetwork::Partition(const std::string& address, bool partitioned) {
  impl_->Partition(address, partitioned);
}
std::unique_ptr<Transport> InProcessNetwork::MakeTransport() {
  return std::make_unique<InProcessTransport<Impl>>(*impl_);
}

}  // namespace longhaul::worker
