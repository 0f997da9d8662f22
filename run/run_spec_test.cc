#include "run/run_spec.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/test_spec.h"

namespace longhaul::run {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::function<void(RunSpec&)>& change) {
  RunSpec spec = ExampleSpec();
  change(spec);
  const absl::Status status = Validate(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Validate, AcceptsTheExampleAndTheExtremes) {
  EXPECT_TRUE(Validate(ExampleSpec()).ok());
  RunSpec spec = ExampleSpec();
  spec.train.schedule.warmup_steps = spec.train.steps;
  spec.train.schedule.min_learning_rate = spec.train.optimizer.learning_rate;
  spec.data.validation_fraction = 0.5;
  spec.train.optimizer.beta1 = 0;
  spec.train.optimizer.grad_clip = 0;
  spec.train.steps = 1'000'000'000;
  spec.stages = 6;
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
}

TEST(Validate, AcceptsEveryListedName) {
  RunSpec spec = ExampleSpec();
  for (const std::string& name : ScheduleNames()) {
    spec.schedule = name;
    EXPECT_TRUE(Validate(spec).ok());
  }
  for (const std::string& name : CodecNames()) {
    spec.codec = name;
    EXPECT_TRUE(Validate(spec).ok());
  }
}

TEST(Validate, ChecksWhatNoFileWasReadFor) {
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.name = ""; }), HasSubstr("'name'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.model.heads = 0; }), HasSubstr("'model.heads'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.train.micro_batch = 0; }), HasSubstr("micro_batch'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.train.optimizer.beta2 = std::nan(""); }),
              HasSubstr("betas'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) {
                s.train.optimizer.learning_rate = std::numeric_limits<double>::infinity();
              }),
              HasSubstr("learning_rate'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.data.train = "a\xFF"; }), HasSubstr("'data.train'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.data.id = std::string(64, 'A'); }),
              HasSubstr("'data.id'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) { s.data.tokenizer = static_cast<Tokenizer>(9); }),
              HasSubstr("'data.tokenizer'"));
  EXPECT_THAT(ErrorOf([](RunSpec& s) {
                s.model.context = 1 << 20;
                s.train.global_batch = s.train.micro_batch = 1 << 20;
              }),
              HasSubstr("tokens"));
}

TEST(RunSpec, ReplicasFitStagesAndMicroBatches) {
  RunSpec spec = ExampleSpec();  // 8 micro-batches
  const auto problem = [&](int64_t stages, std::vector<int64_t> replicas, bool exact) {
    spec.stages = stages;
    spec.replicas = std::move(replicas);
    spec.exact_replicas = exact;
    return std::string(Validate(spec).message());
  };
  EXPECT_EQ(problem(0, {8}, true), "");
  EXPECT_EQ(problem(0, {0}, true), "");
  EXPECT_EQ(problem(0, {3}, false), "");
  EXPECT_EQ(problem(2, {1, 4}, true), "");
  EXPECT_THAT(problem(0, {9}, false), HasSubstr("'pipeline.replicas': must be at most"));
  EXPECT_THAT(problem(0, {65}, false), HasSubstr("'pipeline.replicas': must be auto or a whole"));
  EXPECT_THAT(problem(0, {1, 2}, false), HasSubstr("pipeline.stages (auto), got 2 numbers"));
  EXPECT_THAT(problem(3, {1, 2}, false), HasSubstr("pipeline.stages (3), got 2 numbers"));
  EXPECT_THAT(problem(2, {1, 0}, false), HasSubstr("got 0"));
  EXPECT_THAT(problem(0, {3}, true), HasSubstr("got 3 replicas and 8 micro-batches"));
  spec.train.global_batch = 24;
  EXPECT_THAT(problem(0, {2}, true), HasSubstr("got 2 replicas and 6 micro-batches"));
  EXPECT_EQ(problem(0, {1}, true), "");
}

}  // namespace
}  // namespace longhaul::run
