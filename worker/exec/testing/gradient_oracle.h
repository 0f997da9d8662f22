// For tests: what the gradient of a step is, in double, with nothing of how the run is spread: the
// whole global batch is one micro-batch of one stage.
#ifndef LONGHAUL_WORKER_EXEC_TESTING_GRADIENT_ORACLE_H_
#define LONGHAUL_WORKER_EXEC_TESTING_GRADIENT_ORACLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/exec/testing/executor_cluster.h"

namespace longhaul::worker {

// By parameter name, summed over tokens and uses.
using ExactGradient = std::map<std::string, std::vector<double>>;

// Of the step with the run's initial weights, which are floats.
ExactGradient GradientOfOneProcess(const ClusterOptions& options, int64_t step);

// |a - b| / |b| over all parameters together. LH_CHECKs that both have the same parameters.
double RelativeDifference(const GradientValues& a, const ExactGradient& b);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_TESTING_GRADIENT_ORACLE_H_
