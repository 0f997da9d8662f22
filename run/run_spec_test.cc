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

}  // namespace
}  // namespace longhaul::run
