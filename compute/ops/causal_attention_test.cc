#include "compute/ops/causal_attention.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::HasSubstr;

template <typename T>
class CausalAttentionTest : public ::testing::Test {};
TYPED_TEST_SUITE(CausalAttentionTest, ElementTypes);

struct Outputs {
  Values output, lse;
};

size_t Elements(const CausalAttentionShape& shape) {
  return static_cast<size_t>(shape.batch * shape.context * shape.width);
}

Values Qkv(const CausalAttentionShape& shape) {
  return TestValues(shape.batch * shape.context * shape.qkv_width(), 1);
}

template <typename T>
GuardedBuffer<Wide<T>> Workspace(Backend& backend, const CausalAttentionShape& shape) {
  return GuardedBuffer<Wide<T>>::Poisoned(backend,
                                          static_cast<size_t>(CausalAttentionWorkspace(shape)));
}

template <typename T>
Outputs Forward(Backend& backend, const CausalAttentionShape& shape, const Values& qkv) {
  GuardedBuffer<T> input(backend, qkv);
  auto workspace = Workspace<T>(backend, shape);
  auto output = GuardedBuffer<T>::Poisoned(backend, Elements(shape));
  auto lse = GuardedBuffer<Wide<T>>::Poisoned(
      backend, static_cast<size_t>(shape.batch * shape.heads * shape.context));
  EXPECT_TRUE(CausalAttentionForward<T>(backend, shape, input.span(), output.span(), lse.span(),
                                        workspace.span())
                  .ok());
  workspace.Read();
  return {output.Read(), lse.Read()};
}

template <typename T>
Values Backward(Backend& backend, const CausalAttentionShape& shape, const Values& qkv,
                const Values& output_gradient) {
  const Outputs forward = Forward<T>(backend, shape, qkv);
  GuardedBuffer<T> input(backend, qkv), output(backend, forward.output),
      gradient(backend, output_gradient);
  GuardedBuffer<Wide<T>> lse(backend, forward.lse);
  auto workspace = Workspace<T>(backend, shape);
  auto qkv_gradient = GuardedBuffer<T>::Poisoned(backend, qkv.size());
  EXPECT_TRUE(CausalAttentionBackward<T>(backend, shape, input.span(), output.span(), lse.span(),
                                         gradient.span(), qkv_gradient.span(), workspace.span())
                  .ok());
  workspace.Read();
  return qkv_gradient.Read();
}

// The last columns of each row of q | k | v.
Values OfValues(const CausalAttentionShape& shape, const Values& qkv) {
  const size_t width = static_cast<size_t>(shape.qkv_width());
  Values values;
  for (size_t i = 0; i < qkv.size(); ++i) {
    if (i % width >= width - static_cast<size_t>(shape.kv_heads * shape.head_width())) {
      values.push_back(qkv[i]);
    }
  }
  return values;
}

TYPED_TEST(CausalAttentionTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("causal_attention")) {
      SCOPED_TRACE(golden.name);
      const CausalAttentionShape shape{golden.size("batch"), golden.size("context"),
                                       golden.size("heads"), golden.size("kv_heads"),
                                       golden.size("width")};
      const Values qkv = Rounded<TypeParam>(golden.tensor("qkv"));
      const Values output_gradient = Rounded<TypeParam>(golden.tensor("output_gradient"));
      Outputs expected{golden.tensor("output"), golden.tensor("lse")};
      Values expected_gradient = golden.tensor("qkv_gradient");
      if (!kHasCpuKernels<TypeParam>) {
        const auto cpu = MakeCpuBackend(1);
        expected = Forward<double>(*cpu, shape, qkv);
        expected_gradient = Backward<double>(*cpu, shape, qkv, output_gradient);
      }
      constexpr double kTolerance = kGoldenTolerance<TypeParam>;
      const Outputs outputs = Forward<TypeParam>(*backend, shape, qkv);
      EXPECT_LE(RelativeError(outputs.output, expected.output), kTolerance);
      EXPECT_LE(RelativeError(outputs.lse, expected.lse), kTolerance);
      Values gradient = Backward<TypeParam>(*backend, shape, qkv, output_gradient);
      if (!kHasCpuKernels<TypeParam> && golden.name == "large scores") {
        // Those of queries and keys are differences of what agrees to more bits than these have.
        gradient = OfValues(shape, gradient);
        expected_gradient = OfValues(shape, expected_gradient);
      }
      EXPECT_LE(RelativeError(gradient, expected_gradient), kTolerance);
    }
  }
}

TEST(CausalAttentionTest, GradientIsFiniteDifference) {
  const auto backend = MakeCpuBackend(1);
  for (const CausalAttentionShape& shape :
       {CausalAttentionShape{2, 5, 2, 2, 6}, CausalAttentionShape{1, 66, 1, 1, 2},
        CausalAttentionShape{2, 5, 4, 2, 12}, CausalAttentionShape{1, 34, 3, 1, 6}}) {
    const Values qkv = Qkv(shape);
    const Values weights = TestValues(static_cast<int64_t>(Elements(shape)), 2);
    const Values numerical = NumericalGradient(
        [&](const Values& x) {
          return DotProduct(Forward<double>(*backend, shape, x).output, weights);
        },
        qkv);
    EXPECT_LE(RelativeError(Backward<double>(*backend, shape, qkv, weights), numerical),
              kDifferenceTolerance);
  }
}

// The first query sees one key, so its output is that key's value whatever the scores.
TYPED_TEST(CausalAttentionTest, FirstRowIsFirstValue) {
  const auto backend = TestBackend<TypeParam>(1);
  const CausalAttentionShape shape{.batch = 1, .context = 2, .heads = 1, .kv_heads = 1, .width = 1};
  const Outputs outputs = Forward<TypeParam>(*backend, shape, {100, 100, 7, 0, 100, 9});
  EXPECT_EQ(outputs.output, (Values{7, 8}));
  EXPECT_NEAR(outputs.lse[0], 1e4, 1e-9);
}

// Later tokens do not reach earlier outputs: not by a bit.
TYPED_TEST(CausalAttentionTest, IsCausal) {
  const auto backend = TestBackend<TypeParam>(1);
  const CausalAttentionShape shape{
      .batch = 1, .context = 130, .heads = 2, .kv_heads = 2, .width = 6};
  Values qkv = Qkv(shape);
  const Values before = Forward<TypeParam>(*backend, shape, qkv).output;
  const size_t changed_row = 70;
  for (size_t i = changed_row * 18; i < qkv.size(); ++i) qkv[i] = -qkv[i];
  const Values after = Forward<TypeParam>(*backend, shape, qkv).output;
  for (size_t i = 0; i < changed_row * 6; ++i) ASSERT_EQ(before[i], after[i]) << i;
  EXPECT_NE(before, after);
}

TYPED_TEST(CausalAttentionTest, ThreadsDoNotMatter) {
  // The second has more heads than workspace regions.
  for (const CausalAttentionShape& shape :
       {CausalAttentionShape{3, 67, 3, 3, 15}, CausalAttentionShape{9, 7, 8, 8, 16},
        CausalAttentionShape{1, 150, 5, 5, 40}, CausalAttentionShape{2, 67, 6, 2, 24},
        CausalAttentionShape{17, 7, 16, 8, 32}}) {
    const Values qkv = Qkv(shape);
    const Values gradient = TestValues(static_cast<int64_t>(Elements(shape)), 2);
    ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
      const Outputs outputs = Forward<TypeParam>(backend, shape, qkv);
      return std::vector<Values>{outputs.output, outputs.lse,
                                 Backward<TypeParam>(backend, shape, qkv, gradient)};
    });
  }
}

// By the number of heads, and by no square of the context.
TEST(CausalAttentionTest, WorkspaceIsBounded) {
  CausalAttentionShape shape{
      .batch = 64, .context = 1024, .heads = 16, .kv_heads = 4, .width = 1024};
  const int64_t elements = CausalAttentionWorkspace(shape);
  EXPECT_LE(elements, int64_t{64} * 2 * 64 * shape.context);
  shape.batch *= 2;
  EXPECT_EQ(CausalAttentionWorkspace(shape), elements);
  shape.context *= 2;
  EXPECT_LE(CausalAttentionWorkspace(shape), 2 * elements);
}

TEST(CausalAttentionTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float qkv[18] = {}, output[6] = {}, lse[4] = {};
  const CausalAttentionShape right{1, 2, 1, 1, 3};
  const int64_t needed = CausalAttentionWorkspace(right);
  std::vector<float> workspace(static_cast<size_t>(needed));
  const auto run = [&](const CausalAttentionShape& shape, absl::Span<float> space) {
    return CausalAttentionForward<float>(*backend, shape, qkv, absl::MakeSpan(output),
                                         absl::MakeSpan(lse), space);
  };
  const auto refusal = [&](const CausalAttentionShape& shape) {
    const absl::Status status = run(shape, absl::MakeSpan(workspace));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal({1, 2, 2, 2, 3}), HasSubstr("2 heads do not divide the width 3"));
  EXPECT_THAT(refusal({1, 2, 3, 2, 3}),
              HasSubstr("2 heads of keys do not divide the 3 heads of queries"));
  EXPECT_THAT(refusal({1, 2, 3, 1, 3}), HasSubstr("qkv has 18 elements"));
  EXPECT_THAT(refusal({1, 3, 1, 1, 2}), HasSubstr("lse has 4 elements"));
  EXPECT_THAT(refusal({2, 1, 2, 2, 2}), HasSubstr("qkv has 18 elements"));
  EXPECT_THAT(refusal({0, 2, 1, 1, 3}), HasSubstr("batch is 0"));
  EXPECT_THAT(refusal({1, 2, 1, 0, 3}), HasSubstr("kv_heads is 0"));
  float short_lse[2] = {};
  EXPECT_TRUE(CausalAttentionForward<float>(*backend, right, qkv, absl::MakeSpan(output),
                                            absl::MakeSpan(short_lse), absl::MakeSpan(workspace))
                  .ok());
  const absl::Status status =
      CausalAttentionForward<float>(*backend, right, qkv, absl::MakeSpan(output),
                                    absl::MakeSpan(short_lse), absl::MakeSpan(workspace).first(3));
  EXPECT_THAT(std::string(status.message()), HasSubstr("workspace has 3 elements"));
}

}  // namespace
}  // namespace longhaul::compute
