// Two neighbouring stages over an in-process network, for tests.
#ifndef LONGHAUL_WORKER_COMM_TESTING_TWO_STAGES_H_
#define LONGHAUL_WORKER_COMM_TESTING_TWO_STAGES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "worker/comm/exchange.h"
#include "worker/comm/exchange_router.h"
#include "worker/comm/testing/in_process_transport.h"

namespace longhaul::worker {

inline constexpr Epoch kTestEpoch{1, 4};
inline constexpr uint64_t kTestElements = 100;

inline FrameKey TestKey(FrameKind kind, uint32_t micro_batch, uint32_t to_stage,
                        uint64_t step = 1) {
  return {kTestEpoch, 0, step, micro_batch, to_stage, kind, 0};
}

// Values that no other micro-batch has.
inline std::vector<float> TestValues(uint32_t micro_batch, size_t count = kTestElements) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(micro_batch) + static_cast<float>(i) / 256.0f;
  }
  return values;
}

// Stage `stage` of a pipeline of two, whose nodes are "a" at 10.0.0.1:7000 and "b" at
// 10.0.0.2:7000. A frame of kTestElements values has four chunks.
inline ExchangeOptions TestOptions(int stage) {
  ExchangeOptions options;
  options.run = "first";
  options.epoch = kTestEpoch;
  options.token = "secret";
  options.group = options.stage = stage;
  options.reconnect_min = absl::Milliseconds(1);
  options.reconnect_max = absl::Milliseconds(20);
  options.chunk_bytes = 128;
  options.sign_of_life_every = absl::InfiniteDuration();  // tests count and order messages
  LinkOptions link;
  link.peer_group = link.peer_stage = 1 - stage;
  link.peer_node = stage == 0 ? "b" : "a";
  link.peer_address = stage == 0 ? "10.0.0.2:7000" : "10.0.0.1:7000";
  link.tensor_elements = kTestElements;
  link.tied_elements = 50;
  link.norms_max = 8;
  link.window = 2;
  options.links = {link};
  return options;
}

inline std::string TestAddress(int stage) { return stage == 0 ? "10.0.0.1:7000" : "10.0.0.2:7000"; }

inline std::unique_ptr<Exchange> MakeTestExchange(const ExchangeOptions& options,
                                                  Transport& transport, Clock& clock) {
  absl::StatusOr<std::unique_ptr<Exchange>> exchange = MakeExchange(options, transport, clock);
  LH_CHECK(exchange.ok(), exchange.status().ToString());
  return *std::move(exchange);
}

// Where an exchange can be dialled as long as this lives, which all arguments outlive.
class Door {
 public:
  Door(InProcessNetwork& network, const std::string& address, const ExchangeOptions& options,
       Exchange& exchange, Clock& clock)
      : network_(network), address_(address), options_(options), router_(clock) {
    router_.Register(options.run, options.epoch, options.token, &exchange);
    network_.Listen(address_, &router_);
  }
  ~Door() {
    network_.Stop(address_);
    router_.Unregister(options_.run, options_.epoch);
  }
  const ExchangeRouter& router() const { return router_; }

 private:
  InProcessNetwork& network_;
  const std::string address_;
  const ExchangeOptions options_;
  ExchangeRouter router_;
};

// Both stages, each listening at its address.
class TwoStages {
 public:
  explicit TwoStages(LinkOptions link = TestOptions(0).links[0], Clock& clock = RealClock())
      : network(clock), transport(network.MakeTransport()), link_(std::move(link)), clock_(clock) {}
  ~TwoStages() { Stop(); }

  void Start() {
    for (int stage = 0; stage < 2; ++stage) {
      ExchangeOptions options = TestOptions(stage);
      const LinkOptions peer = options.links[0];
      options.links[0] = link_;
      options.links[0].peer_group = peer.peer_group;
      options.links[0].peer_stage = peer.peer_stage;
      options.links[0].peer_node = peer.peer_node;
      options.links[0].peer_address = peer.peer_address;
      stages_[stage] = MakeTestExchange(options, *transport, clock_);
    }
    for (int stage = 0; stage < 2; ++stage) {
      doors_[stage] = std::make_unique<Door>(network, TestAddress(stage), TestOptions(stage),
                                             *stages_[stage], clock_);
    }
  }

  void Stop() {
    for (int stage = 0; stage < 2; ++stage) {
      doors_[stage].reset();
      stages_[stage].reset();
    }
  }

  Exchange& stage(int stage) { return *stages_[stage]; }
  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  absl::Status Send(FrameKind kind, uint32_t micro_batch, int to) {
    return stage(1 - to).Send(to, TestKey(kind, micro_batch, static_cast<uint32_t>(to)),
                              TestValues(micro_batch), Soon());
  }
  // The values received.
  absl::StatusOr<std::vector<float>> Receive(FrameKind kind, uint32_t micro_batch, int at) {
    std::vector<float> values(kTestElements);
    const absl::Status status =
        stage(at).Receive(1 - at, TestKey(kind, micro_batch, static_cast<uint32_t>(at)),
                          absl::MakeSpan(values), Soon());
    if (!status.ok()) return status;
    return values;
  }

  InProcessNetwork network;
  std::unique_ptr<Transport> transport;

 private:
  const LinkOptions link_;
  Clock& clock_;
  std::unique_ptr<Exchange> stages_[2];
  std::unique_ptr<Door> doors_[2];
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_TWO_STAGES_H_
