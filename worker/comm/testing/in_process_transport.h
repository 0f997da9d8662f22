// A network in memory, for tests and for several stages in one process: real threads and queues,
// no sockets, and faults on demand.
#ifndef LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_TRANSPORT_H_
#define LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_TRANSPORT_H_

#include <memory>
#include <string>

#include "base/clock.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Thread-safe. Outlives its transports and their streams; acceptors outlive it or are stopped
// first.
class InProcessNetwork {
 public:
  explicit InProcessNetwork(Clock& clock);
  ~InProcessNetwork();

  // Streams dialled to `address` are served by `acceptor`, each on its own thread, until Stop.
  void Listen(const std::string& address, StreamAcceptor* acceptor);
  // Breaks the streams of `address` and waits for its threads.
  void Stop(const std::string& address);
  std::unique_ptr<Transport> MakeTransport();

  // Faults. Break: every open stream to `address` ends with Unavailable now; new ones may be
  // dialled. BreakAfter: the next stream to `address` ends after that many more messages, mid-frame
  // if it so falls (both directions count). Partition: dialling fails until healed, and open
  // streams break.
  void Break(const std::string& address);
  void BreakAfter(const std::string& address, int messages);
  void Partition(const std::string& address, bool partitioned);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_TRANSPORT_H_
