// What a plan says a stage needs, against the peak of what the stage takes from its backend while
// it trains. The process's own memory (code, libraries, queues of the network) is beside this.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status_macros.h"
#include "compute/backend/backend.h"
#include "compute/stage/stage.h"
#include "compute/testing/counting_backend.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul {
namespace {

using compute::Stage;

// A step of as many micro-batches as there are slots, all of them in flight at once.
absl::Status TrainStep(Stage<float>& stage, int slots, int64_t rows) {
  const std::vector<int32_t> tokens(static_cast<size_t>(rows), 1);
  LH_RETURN_IF_ERROR(stage.ZeroGradients());
  for (int slot = 0; slot < slots; ++slot) {
    compute::ForwardPass pass;
    pass.slot = slot;
    pass.step = 1;
    pass.training = true;
    double loss = 0;
    if (stage.is_first()) pass.tokens = tokens;
    if (stage.is_last()) {
      pass.targets = tokens;
      pass.loss_sum = &loss;
    }
    LH_RETURN_IF_ERROR(stage.Forward(pass));
  }
  for (int slot = 0; slot < slots; ++slot) LH_RETURN_IF_ERROR(stage.Backward(slot));
  LH_RETURN_IF_ERROR(stage.SumUses());
  return stage.ApplyAdamW({.step = 1});
}

class MemoryTest : public ::testing::TestWithParam<std::tuple<std::string, run::Recompute, int>> {};

TEST_P(MemoryTest, IsWhatThePlanSays) {
  const auto& [family, recompute, stages] = GetParam();
  coordinator::PlanRequest request = coordinator::SmallRequest(
      {coordinator::SomeNode("a", "here"), coordinator::SomeNode("b", "here"),
       coordinator::SomeNode("c", "here")},
      {}, stages);
  request.spec.model.family = family;
  request.spec.model.dropout = family == "gpt2" ? 0.1 : 0;
  request.spec.recompute = recompute;
  const auto plan = coordinator::MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->StageCount(), stages);
  const auto graph = model::BuildGraph(request.spec.model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const int64_t micro_batch = request.spec.train.micro_batch;
  const std::unique_ptr<compute::Backend> cpu = compute::MakeCpuBackend(1);
  for (const coordinator::StagePlacement& placement : plan->stages) {
    EXPECT_EQ(placement.recompute, recompute == run::Recompute::kAlways);
    compute::CountingBackend backend(*cpu);
    const auto stage = Stage<float>::Create(
        *graph, {placement.range, micro_batch, placement.slots, placement.recompute}, backend, 1);
    ASSERT_TRUE(stage.ok()) << stage.status();
    const absl::Status trained = TrainStep(**stage, placement.slots, micro_batch * graph->context);
    ASSERT_TRUE(trained.ok()) << trained;
    const double planned = static_cast<double>(placement.memory.total());
    const double peak = static_cast<double>(backend.peak_bytes());
    EXPECT_GE(peak, 0.9 * planned) << "stage on node " << placement.node;
    EXPECT_LE(peak, 1.1 * planned) << "stage on node " << placement.node;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, MemoryTest,
                         ::testing::Combine(::testing::Values("gpt2", "llama"),
                                            ::testing::Values(run::Recompute::kNever,
                                                              run::Recompute::kAlways),
                                            ::testing::Values(1, 3)));

}  // namespace
}  // namespace longhaul
