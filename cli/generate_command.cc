// longhaul generate --checkpoint DIR --prompt TEXT
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "checkpoint/hugging_face.h"
#include "cli/context.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/sampler.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

struct GenerateOptions {
  std::string checkpoint;
  std::string prompt;
  std::string prompt_tokens;
  int64_t tokens = 200;
  SamplingOptions sampling;
  int threads = 0;
  std::string logits_to;
};

constexpr int64_t kByteVocabulary = 256;
constexpr int64_t kContextKept = 1024;  // a shorter context is never cut

absl::StatusOr<std::vector<int32_t>> ParseTokens(const std::string& list, int64_t vocab) {
  std::vector<int32_t> tokens;
  for (absl::string_view word : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    int32_t token = -1;
    if (!absl::SimpleAtoi(word, &token) || token < 0 || token >= vocab) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prompt-tokens: '", word, "' is not a token id below ", vocab));
    }
    tokens.push_back(token);
  }
  return tokens;
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const GenerateOptions& options, int64_t vocab) {
  if (!options.prompt_tokens.empty()) return ParseTokens(options.prompt_tokens, vocab);
  if (vocab != kByteVocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat("this model has ", vocab, " tokens, not bytes: give --prompt-tokens 1,2,3 ",
                     "instead of --prompt"));
  }
  std::vector<int32_t> tokens;
  for (const char c : options.prompt) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

// {"tokens": [...], "logits": [[...], ...]}, for tools/check_export.py.
absl::Status WriteLogits(Sampler& sampler, const std::vector<int32_t>& tokens,
                         const std::string& path) {
  LH_ASSIGN_OR_RETURN(const std::vector<float> logits, sampler.Logits(tokens));
  const size_t vocab = static_cast<size_t>(sampler.graph().vocab);
  nlohmann::json rows = nlohmann::json::array();
  for (size_t t = 0; t < tokens.size(); ++t) {
    rows.push_back(
        std::vector<float>(logits.begin() + t * vocab, logits.begin() + (t + 1) * vocab));
  }
  return WriteFileAtomically(path, nlohmann::json{{"tokens", tokens}, {"logits", rows}}.dump());
}

absl::Status Emit(Sampler& sampler, std::vector<int32_t> tokens, const GenerateOptions& options,
                  bool json) {
  const bool bytes = sampler.graph().vocab == kByteVocabulary;
  const size_t prompt = tokens.size();
  const auto show = [&](int32_t token) {
    if (json) return;
    Print(bytes ? std::string(1, static_cast<char>(token)) : absl::StrCat(token, " "));
  };
  for (const int32_t token : tokens) show(token);
  for (int64_t i = 0; i < options.tokens && OutputGood(); ++i) {
    LH_ASSIGN_OR_RETURN(const int32_t token,
                        sampler.Next(tokens, options.sampling, static_cast<uint64_t>(i)));
    tokens.push_back(token);
    show(token);
  }
  if (!json) {
    Print("\n");
    return absl::OkStatus();
  }
  nlohmann::ordered_json object = {{"prompt_tokens", prompt}, {"tokens", tokens}};
  if (bytes) object["text"] = std::string(tokens.begin(), tokens.end());
  PrintJsonLine(object);
  return absl::OkStatus();
}

absl::Status Run(const Context& context, const GenerateOptions& options) {
  LH_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                      checkpoint::ReadHuggingFaceSpec(options.checkpoint));
  LH_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, PromptTokens(options, spec.vocab));
  if (tokens.empty()) return absl::InvalidArgumentError("the prompt is empty");
  // Memory is held for the whole context, of which long-context models have more than is used.
  const int64_t used = static_cast<int64_t>(tokens.size()) + options.tokens;
  const int64_t positions =
      spec.graph.empty() ? std::min(spec.context, std::max(used, kContextKept)) : spec.context;
  LH_ASSIGN_OR_RETURN(const checkpoint::ModelWeights weights,
                      checkpoint::ImportHuggingFace(options.checkpoint, positions));
  const int threads = options.threads > 0
                          ? options.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  LH_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(weights, threads));
  if (!options.logits_to.empty()) return WriteLogits(*sampler, tokens, options.logits_to);
  return Emit(*sampler, tokens, options, context.json());
}

int Generate(Context& context, const GenerateOptions& options) {
  const absl::Status status = Run(context, options);
  return status.ok() ? kExitDone : Fail(status);
}

// Not CLI::Range, for which NaN is neither too small nor too large.
std::string IsTemperature(const std::string& text) {
  double value = 0;
  const bool good = absl::SimpleAtod(text, &value) && value >= 0 && value <= 100;
  return good ? "" : absl::StrCat("must be a number from 0 to 100, not ", text);
}

}  // namespace

void RegisterGenerateCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* generate = app.add_subcommand("generate", "continue a text with an exported model");
  AddOutputOption(*generate, context);
  auto options = std::make_shared<GenerateOptions>();
  generate
      ->add_option("--checkpoint", options->checkpoint,
                   "folder with config.json, or with the graph.json of an export")
      ->required();
  CLI::Option* prompt = generate->add_option("--prompt", options->prompt, "text to continue");
  generate->add_option("--prompt-tokens", options->prompt_tokens, "token ids to continue: 1,2,3")
      ->excludes(prompt);
  generate->add_option("--tokens", options->tokens, "how many to add")
      ->check(Within(0, int64_t{1} << 30))
      ->capture_default_str();
  generate->add_option("--temperature", options->sampling.temperature, "0: the likeliest token")
      ->check(IsTemperature)
      ->capture_default_str();
  generate->add_option("--top-k", options->sampling.top_k, "draw among the likeliest; 0: all")
      ->check(WholeNumber())
      ->capture_default_str();
  generate->add_option("--seed", options->sampling.seed, "of the draws")
      ->check(WholeNumber())
      ->capture_default_str();
  generate->add_option("--threads", options->threads, "threads (all cores)")
      ->check(Within(1, 1024));
  generate->add_option("--logits-to", options->logits_to,
                       "write the prompt's logits as JSON to this file instead of generating");
  generate->callback(
      [&chosen, options] { chosen = [options](Context& c) { return Generate(c, *options); }; });
}

}  // namespace longhaul::cli
