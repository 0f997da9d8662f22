#include "checkpoint/shard.h"

#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::checkpoint {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class ShardTest : public testing::Test {
 protected:
  ParameterState State(int index) const {
    return {index, weights_[index], first_[index], second_[index]};
  }

  const model::Graph graph_ = SmallGraph();
  const std::vector<std::vector<float>> weights_ = SmallWeights(true, 0).parameters;
  const std::vector<std::vector<float>> first_ = SmallWeights(true, 1000).parameters;
  const std::vector<std::vector<float>> second_ = SmallWeights(true, 2000).parameters;
};

// Memory for one parameter's state.
struct Buffers {
  explicit Buffers(int64_t elements)
      : weights(elements, -1), first(elements, -1), second(elements, -1) {}
  MutableParameterState State(int index) {
    return {index, absl::MakeSpan(weights), absl::MakeSpan(first), absl::MakeSpan(second)};
  }
  std::vector<float> weights, first, second;
};

TEST_F(ShardTest, ComesBackBitForBit) {
  const std::vector<ParameterState> states = {State(1), State(4)};
  const EncodedShard encoded = EncodeShard(graph_, states);
  EXPECT_THAT(encoded.shard.parameters,
              ElementsAre(graph_.parameters[1].name, graph_.parameters[4].name));
  EXPECT_EQ(encoded.shard.sha256, Sha256Hex(encoded.bytes));
  EXPECT_EQ(encoded.shard.bytes, encoded.bytes.size());
  EXPECT_EQ(EncodeShard(graph_, states).bytes, encoded.bytes);

  Buffers one(graph_.parameters[1].elements()), two(graph_.parameters[2].elements()),
      four(graph_.parameters[4].elements());
  const auto copied = DecodeShard(graph_, encoded.shard, encoded.bytes,
                                  std::vector{four.State(4), two.State(2), one.State(1)});
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(*copied, 2);
  EXPECT_EQ(one.weights, weights_[1]);
  EXPECT_EQ(one.first, first_[1]);
  EXPECT_EQ(one.second, second_[1]);
  EXPECT_EQ(four.second, second_[4]);
  EXPECT_THAT(two.weights, Each(-1.0f));  // in another shard

  Buffers only_weights(graph_.parameters[1].elements());
  MutableParameterState unwanted = only_weights.State(1);
  unwanted.first_moment = unwanted.second_moment = {};
  ASSERT_TRUE(DecodeShard(graph_, encoded.shard, encoded.bytes, std::vector{unwanted}).ok());
  EXPECT_EQ(only_weights.weights, weights_[1]);
}

TEST_F(ShardTest, ReadersOfSafetensorsFindTheTensors) {
  const EncodedShard encoded = EncodeShard(graph_, std::vector{State(0)});
  const auto file = ParseSafetensors(encoded.bytes);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_NE(file->Find("wte"), nullptr);
  EXPECT_NE(file->Find("wte.first_moment"), nullptr);
  EXPECT_NE(file->Find("wte.second_moment"), nullptr);
}

TEST_F(ShardTest, EveryDamageIsFound) {
  const EncodedShard encoded = EncodeShard(graph_, std::vector{State(2)});
  Buffers buffers(graph_.parameters[2].elements());
  for (size_t i = 0; i < encoded.bytes.size(); i += 7) {
    std::string damaged = encoded.bytes;
    damaged[i] ^= 0x10;
    const auto copied = DecodeShard(graph_, encoded.shard, damaged, std::vector{buffers.State(2)});
    EXPECT_EQ(copied.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(copied.status().message(), HasSubstr(encoded.shard.sha256));
  }
  EXPECT_FALSE(DecodeShard(graph_, encoded.shard, "", {}).ok());
  EXPECT_THAT(buffers.weights, Each(-1.0f));
}

// Shards whose hash is right but whose content is not what the manifest or the model says.
TEST_F(ShardTest, ContentMustFitManifestAndModel) {
  const auto error = [&](std::string bytes, std::vector<std::string> parameters) {
    const Shard shard{Sha256Hex(bytes), bytes.size(), std::move(parameters)};
    const auto copied = DecodeShard(graph_, shard, bytes, {});
    EXPECT_EQ(copied.status().code(), absl::StatusCode::kDataLoss);
    return std::string(copied.status().message());
  };
  const std::string good = EncodeShard(graph_, std::vector{State(0)}).bytes;
  EXPECT_THAT(error(good, {"wpe"}), HasSubstr("lacks the tensor 'wpe'"));
  EXPECT_THAT(error(good, {"wze"}), HasSubstr("'wze', which the model does not have"));
  EXPECT_THAT(error(good, {"wte", "wpe"}), HasSubstr("3 tensors instead of 3 for each of 2"));
  EXPECT_THAT(error(good, {}), HasSubstr("tensors instead of"));
  EXPECT_THAT(error("nonsense", {"wte"}), HasSubstr("safetensors"));
  EXPECT_THAT(error(WriteSafetensors({}, {}), {}), HasSubstr("not of the format"));

  const std::map<std::string, std::string> format = {{"format", "longhaul.shard.1"}};
  const std::string data(20 * 8, '\0');
  const auto tensors = [&](const std::string& dtype, std::vector<int64_t> shape, size_t bytes) {
    std::vector<TensorView> views;
    for (const char* suffix : {"", ".first_moment", ".second_moment"}) {
      views.push_back(
          {std::string("wte") + suffix, dtype, shape, absl::string_view(data).substr(0, bytes)});
    }
    return WriteSafetensors(views, format);
  };
  EXPECT_TRUE(
      DecodeShard(
          graph_,
          {Sha256Hex(tensors("F32", {5, 4}, 80)), tensors("F32", {5, 4}, 80).size(), {"wte"}},
          tensors("F32", {5, 4}, 80), {})
          .ok());
  EXPECT_THAT(error(tensors("F32", {4, 5}, 80), {"wte"}), HasSubstr("tensor 'wte'"));
  EXPECT_THAT(error(tensors("F64", {5, 4}, 160), {"wte"}), HasSubstr("not F32"));
}

TEST_F(ShardTest, WrongSizesOfMemoryAreBugs) {
  EXPECT_DEATH(
      EncodeShard(graph_, std::vector{ParameterState{0, weights_[1], first_[0], second_[0]}}),
      "wte");
  EXPECT_DEATH(EncodeShard(graph_, std::vector{ParameterState{99, {}, {}, {}}}), "parameter 99");
}

}  // namespace
}  // namespace longhaul::checkpoint
