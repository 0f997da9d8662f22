// Waits in real time, while the simulated time stands still.
#ifndef LONGHAUL_TESTS_SIM_REAL_TIME_H_
#define LONGHAUL_TESTS_SIM_REAL_TIME_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/host/coordinator_host.h"

namespace longhaul::sim {

// A little of it. No outcome depends on how much.
void PassRealTime();

// Whether it becomes so within two minutes, which is far more than the slowest machine needs.
bool BecomesTrue(const std::function<bool()>& is_so);

// What the host answers. One that does not within as long is stopped, which ends the request, and
// fails the test.
absl::StatusOr<std::string> AnswerOf(coordinator::CoordinatorHost& host,
                                     coordinator::CoordinatorHost::PersonEvent event);

}  // namespace longhaul::sim

#endif  // LONGHAUL_TESTS_SIM_REAL_TIME_H_
