#include "worker/exec/verdict.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::worker {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Verdict, ClipsAsPyTorch) {
  // torch.nn.utils.clip_grad_norm_ of a gradient of norm 3 with max_norm 1: 1 / (3 + 1e-6).
  const Verdict verdict = DecideVerdict(900, 10, 1.0, Directive::kNone);
  EXPECT_TRUE(verdict.apply);
  EXPECT_EQ(verdict.gradient_norm, 3);
  EXPECT_THAT(verdict.gradient_scale, DoubleNear(0.1 * 0.33333322222225925, 1e-17));
}

TEST(Verdict, DoesNotClipSmallGradientsNorWithoutALimit) {
  EXPECT_EQ(DecideVerdict(25, 10, 1.0, Directive::kNone).gradient_scale, 0.1);
  EXPECT_EQ(DecideVerdict(1e12, 10, 0, Directive::kNone).gradient_scale, 0.1);
  EXPECT_EQ(DecideVerdict(0, 10, 1.0, Directive::kNone).gradient_scale, 0.1);
}

TEST(Verdict, SkipsWhatIsNotFinite) {
  for (const double sum : {kInfinity, kNan}) {
    const Verdict verdict = DecideVerdict(sum, 10, 1.0, Directive::kStop);
    EXPECT_FALSE(verdict.apply);
    EXPECT_FALSE(std::isfinite(verdict.gradient_norm));
    EXPECT_EQ(verdict.gradient_scale, 0);
    EXPECT_EQ(verdict.directive, Directive::kStop);
  }
}

// Nothing to take the mean of: skipped, and no number that is none.
TEST(Verdict, SkipsAStepWithoutTokens) {
  const Verdict verdict = DecideVerdict(0, 0, 1.0, Directive::kStop);
  EXPECT_FALSE(verdict.apply);
  EXPECT_EQ(verdict.gradient_norm, 0);
  EXPECT_EQ(verdict.gradient_scale, 0);
  EXPECT_EQ(verdict.tokens, 0);
  const auto back = VerdictFromDoubles(ToDoubles(verdict), 8);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, verdict);
}

TEST(Verdict, RoundTrips) {
  for (const Directive directive : {Directive::kNone, Directive::kStop}) {
    const Verdict verdict = DecideVerdict(123.456, 7, 0.5, directive);
    const auto back = VerdictFromDoubles(ToDoubles(verdict), 7);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, verdict);
    EXPECT_TRUE(VerdictFromDoubles(ToDoubles(DecideVerdict(kNan, 7, 0.5, directive)), 7).ok());
  }
}

struct BadVerdict {
  std::vector<double> values;
  const char* why;
};

class RefusedVerdict : public testing::TestWithParam<BadVerdict> {};

TEST_P(RefusedVerdict, WithItsReason) {
  const absl::Status status = VerdictFromDoubles(GetParam().values, 8).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Verdict, RefusedVerdict,
    testing::Values(BadVerdict{{}, "0 numbers, 5 expected"},
                    BadVerdict{{1, 1, 1, 8, 0, 0}, "6 numbers, 5 expected"},
                    BadVerdict{{2, 1, 1, 8, 0}, "apply is 2"},
                    BadVerdict{{kNan, 1, 1, 8, 0}, "apply is"},
                    BadVerdict{{1, kNan, 1, 8, 0}, "the norm to apply is"},
                    BadVerdict{{1, kInfinity, 1, 8, 0}, "the norm to apply is inf"},
                    BadVerdict{{1, -1, 1, 8, 0}, "the norm to apply is -1"},
                    BadVerdict{{0, 1, 0, 8, 0}, "the norm to skip is 1"},
                    BadVerdict{{0, -kInfinity, 0, 8, 0}, "the norm to skip is -inf"},
                    BadVerdict{{1, 1, 0, 8, 0}, "the gradient scale is 0"},
                    BadVerdict{{1, 1, -1, 8, 0}, "the gradient scale is -1"},
                    BadVerdict{{1, 1, kInfinity, 8, 0}, "the gradient scale is inf"},
                    BadVerdict{{0, kNan, 1, 8, 0}, "the gradient scale is 1"},
                    BadVerdict{{1, 1, 1, 9, 0}, "the number of tokens is 9"},
                    BadVerdict{{1, 1, 1, -1, 0}, "the number of tokens is -1"},
                    BadVerdict{{1, 1, 1, 1.5, 0}, "the number of tokens is 1.5"},
                    BadVerdict{{1, 1, 1, kNan, 0}, "the number of tokens is"},
                    BadVerdict{{1, 1, 1, 0, 0}, "the number of tokens to apply is 0"},
                    BadVerdict{{0, -1, 0, 0, 0}, "the norm to skip is -1"},
                    BadVerdict{{1, 1, 1, 8, 1}, "the directive is 1"},
                    BadVerdict{{1, 1, 1, 8, 3}, "the directive is 3"},
                    BadVerdict{{1, 1, 1, 8, 0.5}, "the directive is 0.5"},
                    BadVerdict{{1, 1, 1, 8, kNan}, "the directive is"}));

TEST(DirectiveBox, IsTakenOnce) {
  DirectiveBox box;
  EXPECT_EQ(box.Take(), Directive::kNone);
  box.Set(Directive::kStop);
  EXPECT_EQ(box.Take(), Directive::kStop);
  EXPECT_EQ(box.Take(), Directive::kNone);
}

}  // namespace
}  // namespace longhaul::worker
