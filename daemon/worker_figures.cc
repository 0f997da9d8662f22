#include "daemon/worker_figures.h"

#include <string>

namespace longhaul::daemon {

std::vector<Figure> WorkerFigures(const WorkerCondition& condition,
                                  const ExchangeStreamCounters& counters) {
  std::vector<Figure> figures = {{"longhaul_worker_member",
                                  "1 while the coordinator has accepted this worker",
                                  false,
                                  {},
                                  condition.member ? 1.0 : 0.0},
                                 {"longhaul_worker_busy",
                                  "1 while a stage is assigned",
                                  false,
                                  {},
                                  condition.busy ? 1.0 : 0.0},
                                 {"longhaul_exchange_stale_epochs_refused_total",
                                  "Streams of an older epoch refused",
                                  true,
                                  {},
                                  static_cast<double>(condition.stale_epochs_refused)}};
  const auto add = [&figures](std::string name, std::string help,
                              const std::atomic<uint64_t>& counter) {
    figures.push_back({"longhaul_exchange_" + std::move(name) + "_total",
                       std::move(help),
                       true,
                       {},
                       static_cast<double>(counter.load(std::memory_order_relaxed))});
  };
  add("chunks_sent", "Pieces of frames sent, resent ones included", counters.chunks_sent);
  add("chunks_received", "Pieces of frames received", counters.chunks_received);
  add("bytes_sent", "Bytes of frames sent, resent ones included", counters.bytes_sent);
  add("bytes_received", "Bytes of frames received", counters.bytes_received);
  add("streams_dialled", "Streams opened to peers, reconnections included",
      counters.streams_dialled);
  add("dials_failed", "Attempts to reach a peer that failed", counters.dials_failed);
  add("streams_accepted", "Streams opened by peers", counters.streams_accepted);
  add("streams_refused", "Streams of peers without the cluster's token", counters.streams_refused);
  return figures;
}

}  // namespace longhaul::daemon
