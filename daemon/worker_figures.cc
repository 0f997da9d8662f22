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
  const auto add = [&figures](std::string name, std::string help, uint64_t counter) {
    figures.push_back({"longhaul_exchange_" + std::move(name) + "_total",
                       std::move(help),
                       true,
                       {},
                       static_cast<double>(counter)});
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
  const worker::ExchangeCounters& exchange = condition.exchange;
  add("frames_sent", "Frames sent", exchange.frames_sent);
  add("frames_received", "Whole frames received", exchange.frames_received);
  add("frames_resent", "Frames of which a part was sent again after a broken stream",
      exchange.frames_resent);
  add("reconnects", "Streams of a link that came back after a break", exchange.reconnects);
  add("duplicates_dropped", "Received pieces that were already here", exchange.duplicates_dropped);
  add("stale_frames_dropped", "Frames and streams of an older epoch that reached a stage",
      exchange.stale_epochs_dropped);
  add("corrupt_dropped", "Frames refused for a wrong checksum or header", exchange.corrupt_dropped);
  return figures;
}

}  // namespace longhaul::daemon
