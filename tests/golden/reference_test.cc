// Training against a float64 PyTorch reference: logits, loss, every gradient, and every weight
// after one and after three AdamW steps. Norm-wise relative errors.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "compute/stage/testing/in_process_pipeline.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "tests/golden/tensor_file.h"

namespace longhaul {
namespace {

using compute::InProcessPipeline;
using compute::TestBatch;

struct Training {
  explicit Training(const nlohmann::json& json)
      : seed(json.at("seed")),
        steps(json.at("steps")),
        micro_batches(json.at("micro_batches")),
        micro_batch(json.at("micro_batch")),
        grad_clip(json.at("grad_clip")) {
    adamw.learning_rate = json.at("learning_rate");
    adamw.beta1 = json.at("beta1");
    adamw.beta2 = json.at("beta2");
    adamw.epsilon = json.at("epsilon");
    adamw.weight_decay = json.at("weight_decay");
  }
  uint64_t seed;
  int steps, micro_batches;
  int64_t micro_batch;
  double grad_clip;
  compute::AdamWStep adamw;
};

model::Graph GraphOf(const nlohmann::json& json) {
  model::ModelSpec spec;
  spec.family = json.at("family");
  spec.layers = json.at("layers");
  spec.hidden = json.at("hidden");
  spec.heads = json.at("heads");
  spec.context = json.at("context");
  spec.vocab = json.at("vocab");
  spec.tied = json.at("tied");
  spec.kv_heads = json.value("kv_heads", spec.kv_heads);
  spec.ffn = json.value("ffn", spec.ffn);
  spec.qkv_bias = json.value("qkv_bias", spec.qkv_bias);
  spec.rope_theta = json.value("rope_theta", spec.rope_theta);
  if (json.contains("rope_scaling")) {
    const nlohmann::json& scaling = json.at("rope_scaling");
    spec.rope_scaling = {scaling.at("factor"), scaling.at("low_frequency_factor"),
                         scaling.at("high_frequency_factor"), scaling.at("original_context")};
  }
  auto graph = model::BuildGraph(spec);
  LH_CHECK(graph.ok(), graph.status().ToString());
  return *std::move(graph);
}

// Sums for a norm-wise relative error.
class Error {
 public:
  void Add(double actual, double expected) {
    difference_ += (actual - expected) * (actual - expected);
    expected_ += expected * expected;
  }
  double relative() const { return std::sqrt(difference_ / expected_); }

 private:
  double difference_ = 0, expected_ = 0;
};

struct Case {
  const char* file;
  bool reference_precision;  // double instead of float
};

class ReferenceTest : public ::testing::TestWithParam<Case> {};

template <typename T>
class Comparison {
 public:
  Comparison(const std::string& path, double tolerance)
      : file_(path),
        tolerance_(tolerance),
        training_(file_.Metadata("training")),
        graph_(GraphOf(file_.Metadata("model"))),
        tokens_(file_.Integers("tokens")),
        targets_(file_.Integers("targets")),
        losses_(file_.Floats("loss")),
        backend_(compute::MakeCpuBackend(2)),
        pipeline_(graph_, {}, training_.micro_batch, 1, *backend_, training_.seed) {
    pipeline_.PerturbWeights();
  }

  void Run() {
    CompareLogits();
    for (int step = 0; step < training_.steps; ++step) {
      Step(step);
      if (step == 0 || step + 1 == training_.steps) {
        const std::string prefix = "weights_" + std::to_string(step + 1) + "/";
        CompareTensors(prefix, 1, [&](int parameter) { return pipeline_.Weights(parameter); });
      }
    }
    std::printf("torch %s; worst relative error %.2e (%s); largest key bias gradient %.2e\n",
                file_.TorchVersion().c_str(), worst_, worst_name_.c_str(), worst_key_bias_);
  }

 private:
  int64_t rows() const { return training_.micro_batch * graph_.context; }
  double step_tokens() const { return static_cast<double>(rows() * training_.micro_batches); }

  std::vector<TestBatch> Batches(int step) const {
    std::vector<TestBatch> batches(training_.micro_batches);
    int64_t begin = step * training_.micro_batches * rows();
    for (TestBatch& batch : batches) {
      batch.tokens.assign(tokens_.begin() + begin, tokens_.begin() + begin + rows());
      batch.targets.assign(targets_.begin() + begin, targets_.begin() + begin + rows());
      begin += rows();
    }
    return batches;
  }

  void Expect(const std::string& name, double error) {
    EXPECT_LE(error, tolerance_) << name;
    if (error > worst_) {
      worst_ = error;
      worst_name_ = name;
    }
  }

  void CompareLogits() {
    pipeline_.Forward(0, Batches(0)[0]);
    const std::vector<float> expected = file_.Floats("logits");
    const absl::Span<const T> logits = pipeline_.last().logits().template As<T>();
    ASSERT_EQ(logits.size(), expected.size());
    Error error;
    for (size_t i = 0; i < expected.size(); ++i) error.Add(logits[i], expected[i]);
    Expect("logits", error.relative());
  }

  void Step(int step) {
    double loss_sum = 0;
    for (double loss : pipeline_.Accumulate(Batches(step), compute::TestOrder::kOneByOne)) {
      loss_sum += loss;
    }
    Error loss;
    loss.Add(loss_sum / step_tokens(), losses_[step]);
    Expect("loss of step " + std::to_string(step + 1), loss.relative());

    const double norm = pipeline_.GradientNorm() / step_tokens();
    if (step == 0) {
      CompareTensors("gradient/", 1 / step_tokens(),
                     [&](int parameter) { return pipeline_.Gradient(parameter); });
      CheckKeyBiases(norm);
    }
    EXPECT_GT(norm, training_.grad_clip) << "the fixture is meant to clip in every step";
    compute::AdamWStep adamw = training_.adamw;
    adamw.gradient_scale =
        std::min(1.0, training_.grad_clip / (norm + 1e-6)) / step_tokens();  // as PyTorch clips
    adamw.step = step + 1;
    pipeline_.ApplyAdamW(adamw);
  }

  // The k third of GPT-2's attn.qkv.bias: its exact gradient is zero, because it adds the same to
  // all scores of a query, and Adam magnifies the noise that is left.
  bool IsKeyBias(int parameter, size_t element) const {
    const model::Parameter& p = graph_.parameters[parameter];
    return p.name.starts_with("h.") && p.name.ends_with("attn.qkv.bias") &&
           element / (static_cast<size_t>(p.elements()) / 3) == 1;
  }

  template <typename GetTensor>
  void CompareTensors(const std::string& prefix, double factor, GetTensor tensor) {
    for (int parameter = 0; parameter < static_cast<int>(graph_.parameters.size()); ++parameter) {
      const std::string name = prefix + graph_.parameters[parameter].name;
      const std::vector<float> expected = file_.Floats(name);
      const absl::Span<const T> actual = tensor(parameter);
      ASSERT_EQ(actual.size(), expected.size()) << name;
      Error error;
      for (size_t e = 0; e < expected.size(); ++e) {
        if (!IsKeyBias(parameter, e)) error.Add(factor * actual[e], expected[e]);
      }
      Expect(name, error.relative());
    }
  }

  void CheckKeyBiases(double global_norm) {
    for (int parameter = 0; parameter < static_cast<int>(graph_.parameters.size()); ++parameter) {
      double squares = 0;
      const absl::Span<const T> gradient = pipeline_.Gradient(parameter);
      for (size_t e = 0; e < gradient.size(); ++e) {
        if (IsKeyBias(parameter, e)) squares += double{gradient[e]} * gradient[e];
      }
      const double relative = std::sqrt(squares) / step_tokens() / global_norm;
      EXPECT_LE(relative, 1e-6) << graph_.parameters[parameter].name;
      worst_key_bias_ = std::max(worst_key_bias_, relative);
    }
  }

  const TensorFile file_;
  const double tolerance_;
  const Training training_;
  const model::Graph graph_;
  const std::vector<int32_t> tokens_, targets_;
  const std::vector<float> losses_;
  const std::unique_ptr<compute::Backend> backend_;
  InProcessPipeline<T> pipeline_;
  double worst_ = 0, worst_key_bias_ = 0;
  std::string worst_name_;
};

// The fixtures are rounded to float, so double cannot agree better than 6e-8.
TEST_P(ReferenceTest, TrainingAgreesWithPyTorch) {
  const std::string path = std::string("tests/golden/") + GetParam().file + ".safetensors";
  if (GetParam().reference_precision) {
    Comparison<double>(path, 1e-7).Run();
  } else {
    Comparison<float>(path, 1e-5).Run();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest,
                         ::testing::Values(Case{"gpt2_tied", false}, Case{"gpt2_tied", true},
                                           Case{"gpt2_untied", false}, Case{"gpt2_untied", true},
                                           Case{"llama", false}, Case{"llama", true},
                                           Case{"qwen2", false}, Case{"qwen2", true}),
                         [](const auto& info) {
                           return std::string(info.param.file) +
                                  (info.param.reference_precision ? "_double" : "_float");
                         });

}  // namespace
}  // namespace longhaul
