#include "cli/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Share of [0, 1) that gives each token, by trying `draws` evenly spread numbers.
std::map<int32_t, double> Shares(const std::vector<float>& logits, const SamplingOptions& options,
                                 int draws) {
  std::map<int32_t, double> shares;
  for (int i = 0; i < draws; ++i) {
    shares[DrawToken(logits, options, (i + 0.5) / draws)] += 1.0 / draws;
  }
  return shares;
}

TEST(DrawToken, FollowsTheSoftmax) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, 2.0f, 0.0f};
  for (const double temperature : {0.25, 1.0, 3.0}) {
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    const auto shares = Shares(logits, {temperature, /*top_k=*/0, 1}, 20000);
    for (int32_t token = 0; token < 5; ++token) {
      const auto share = shares.find(token);
      EXPECT_NEAR(share == shares.end() ? 0 : share->second,
                  std::exp(logits[token] / temperature) / total, 1e-4)
          << token << " at " << temperature;
    }
  }
}

TEST(DrawToken, TopKDrawsAmongTheLikeliest) {
  const std::vector<float> logits = {0, 3, 1, 2};
  const auto shares = Shares(logits, {1.0, /*top_k=*/2, 1}, 20000);
  ASSERT_THAT(shares, SizeIs(2));
  EXPECT_NEAR(shares.at(1), std::exp(1.0) / (std::exp(1.0) + 1), 1e-4);
  EXPECT_NEAR(shares.at(3), 1 / (std::exp(1.0) + 1), 1e-4);
  EXPECT_THAT(Shares(logits, {1.0, /*top_k=*/1, 1}, 100), SizeIs(1));
  EXPECT_THAT(Shares(logits, {1.0, /*top_k=*/1000, 1}, 100), SizeIs(4));
}

TEST(DrawToken, WithoutTemperatureTheLikeliestAndOfEqualsTheFirst) {
  const std::vector<float> logits = {1, 4, 4, 2};
  for (const double uniform : {0.0, 0.5, 0.999999}) {
    EXPECT_EQ(DrawToken(logits, {/*temperature=*/0, 0, 1}, uniform), 1);
  }
}

TEST(DrawToken, ExtremesStayInside) {
  const std::vector<float> logits = {-3e38f, 3e38f, 0};
  for (const double temperature : {1e-300, 1.0, 1e300}) {
    for (const double uniform : {0.0, 0.5, std::nextafter(1.0, 0.0)}) {
      const int32_t token = DrawToken(logits, {temperature, 0, 1}, uniform);
      EXPECT_TRUE(token >= 0 && token < 3);
    }
  }
  EXPECT_EQ(DrawToken({-5.0f}, {1.0, 0, 1}, 0.7), 0);
}

// A small model with weights that differ everywhere.
checkpoint::ModelWeights Weights() {
  checkpoint::ModelWeights weights;
  weights.spec = {"gpt2",       /*layers=*/2,  /*hidden=*/8,
                  /*heads=*/2,  /*context=*/4, /*vocab=*/16,
                  /*tied=*/true};
  const model::Graph graph = *model::BuildGraph(weights.spec);
  uint64_t index = 0;
  for (const model::Parameter& parameter : graph.parameters) {
    std::vector<float>& values = weights.parameters.emplace_back(parameter.elements());
    for (float& value : values) {
      value =
          static_cast<float>(RandomBits(7, RandomStream::kSampling, 0, 0, index++)[0]) * 0x1p-32f -
          0.5f;
    }
  }
  return weights;
}

class SamplerTest : public testing::Test {
 protected:
  const std::unique_ptr<Sampler> sampler_ = *Sampler::Create(Weights(), 1);
};

TEST_F(SamplerTest, TheSameArgumentsGiveTheSameToken) {
  const std::unique_ptr<Sampler> other = *Sampler::Create(Weights(), 2);
  std::map<int32_t, int> seen;
  for (uint64_t position = 0; position < 40; ++position) {
    const auto token = sampler_->Next({1, 2, 3}, {1.0, 0, 5}, position);
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(*token, *sampler_->Next({1, 2, 3}, {1.0, 0, 5}, position));
    EXPECT_EQ(*token, *other->Next({1, 2, 3}, {1.0, 0, 5}, position));
    ++seen[*token];
  }
  EXPECT_GT(seen.size(), 3u);
}

TEST_F(SamplerTest, NextIsADrawFromTheLastLogits) {
  const auto logits = sampler_->Logits({4, 9});
  ASSERT_TRUE(logits.ok());
  ASSERT_THAT(*logits, SizeIs(2 * 16));
  const std::vector<float> last(logits->begin() + 16, logits->end());
  EXPECT_EQ(*sampler_->Next({4, 9}, {0, 0, 1}, 0), DrawToken(last, {0, 0, 1}, 0.3));
}

TEST_F(SamplerTest, LogitsDoNotSeeWhatFollows) {
  const auto one = sampler_->Logits({4});
  const auto two = sampler_->Logits({4, 9});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(std::equal(one->begin(), one->end(), two->begin()));
}

TEST_F(SamplerTest, OfALongTextTheEndCounts) {
  EXPECT_EQ(*sampler_->Next({9, 9, 9, 1, 2, 3, 4}, {1.0, 0, 5}, 3),
            *sampler_->Next({1, 2, 3, 4}, {1.0, 0, 5}, 3));
}

TEST_F(SamplerTest, RefusesWhatItCannotContinue) {
  EXPECT_EQ(sampler_->Next({}, {}, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler_->Logits({1, 2, 3, 4, 5}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(sampler_->Next({16}, {}, 0).ok());
  EXPECT_FALSE(sampler_->Next({-1}, {}, 0).ok());
}

TEST_F(SamplerTest, AModelThatDivergedIsNamedAsSuch) {
  checkpoint::ModelWeights weights = Weights();
  for (float& value : weights.parameters.back()) value = std::numeric_limits<float>::quiet_NaN();
  const std::unique_ptr<Sampler> broken = *Sampler::Create(weights, 1);
  const auto token = broken->Next({1, 2}, {1.0, 0, 1}, 0);
  EXPECT_EQ(token.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(token.status().message()), HasSubstr("not finite"));
}

}  // namespace
}  // namespace longhaul::cli
