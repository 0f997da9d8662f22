// A network whose frames need simulated time, so that no run outpaces the test that drives it.
#ifndef LONGHAUL_TESTS_SIM_PACED_TRANSPORT_H_
#define LONGHAUL_TESTS_SIM_PACED_TRANSPORT_H_

#include <memory>

#include "base/clock.h"
#include "worker/comm/transport.h"

namespace longhaul::sim {

// Streams over `transport` that write a few chunks (less than two steps of the tests' runs send) at
// one moment of `clock` and wait for a later one with the next. A test that looks after each
// moment sees every step or two of a run of several stages.
std::unique_ptr<worker::Transport> MakePacedTransport(std::unique_ptr<worker::Transport> transport,
                                                      Clock& clock);

}  // namespace longhaul::sim

#endif  // LONGHAUL_TESTS_SIM_PACED_TRANSPORT_H_
