// Private to model/: reads a config.json key by key, so that no key goes unread.
#ifndef LONGHAUL_MODEL_CONFIG_READER_H_
#define LONGHAUL_MODEL_CONFIG_READER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/family.h"

namespace longhaul::model {

// Over an object that must outlive it. Every method marks its key as known; Finish refuses the
// keys that are not. Errors are InvalidArgument and name key and value.
class ConfigReader {
 public:
  // `section` stands before keys in messages: "rope_scaling.".
  explicit ConfigReader(const Json& object, std::string section = "")
      : object_(object), section_(std::move(section)) {}

  // A whole number in [1, max].
  absl::StatusOr<int64_t> Whole(absl::string_view key, int64_t max);
  // `otherwise` where the key is absent or null.
  absl::StatusOr<int64_t> WholeOr(absl::string_view key, int64_t max, int64_t otherwise);
  // A number in [min, max]; `otherwise` where the key is absent, an error if there is none.
  absl::StatusOr<double> Real(absl::string_view key, double min, double max,
                              std::optional<double> otherwise = std::nullopt);
  absl::StatusOr<bool> FlagOr(absl::string_view key, bool otherwise);
  // The key, where it is given, must have one of `values`.
  absl::Status Only(absl::string_view key, std::initializer_list<Json> values);
  // Keys that say nothing about what the model computes.
  void Ignore(std::initializer_list<absl::string_view> keys);
  // The value; null where the key is absent or its value is null.
  const Json* Find(absl::string_view key);
  // "'rope_scaling.factor' must be ..., not VALUE".
  absl::Status Refuse(absl::string_view key, absl::string_view must) const;

  absl::Status Finish() const;

 private:
  const Json& object_;
  const std::string section_;
  std::set<std::string, std::less<>> known_;
};

// Keys of every configuration of transformers that do not change what is computed.
void IgnoreCommonKeys(ConfigReader& reader);

// One function for each family of configurations.
absl::StatusOr<ModelSpec> SpecOfGpt2Config(const Json& config);
// `qwen2`: model_type is qwen2, else llama.
absl::StatusOr<ModelSpec> SpecOfLlamaConfig(const Json& config, bool qwen2);
// The member "architectures" and all that follows; `spec` builds.
nlohmann::ordered_json Gpt2Config(const ModelSpec& spec);
nlohmann::ordered_json LlamaConfig(const ModelSpec& spec);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_CONFIG_READER_H_
