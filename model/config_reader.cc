#include "model/config_reader.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longhaul::model {
namespace {

// Of a value in a message; a list of thousands helps nobody.
constexpr size_t kShownBytesMax = 200;

std::string Show(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

}  // namespace

const Json* ConfigReader::Find(absl::string_view key) {
  known_.insert(std::string(key));
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

absl::Status ConfigReader::Refuse(absl::string_view key, absl::string_view must) const {
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("'", section_, key, "' is missing"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", section_, key, "' must be ", must, ", not ", Show(*found)));
}

absl::StatusOr<int64_t> ConfigReader::Whole(absl::string_view key, int64_t max) {
  const Json* const value = Find(key);
  const bool good = value != nullptr && value->is_number_unsigned() &&
                    value->get<uint64_t>() >= 1 &&
                    value->get<uint64_t>() <= static_cast<uint64_t>(max);
  if (!good) return Refuse(key, absl::StrCat("a whole number from 1 to ", max));
  return value->get<int64_t>();
}

absl::StatusOr<int64_t> ConfigReader::WholeOr(absl::string_view key, int64_t max,
                                              int64_t otherwise) {
  if (Find(key) == nullptr) return otherwise;
  return Whole(key, max);
}

absl::StatusOr<double> ConfigReader::Real(absl::string_view key, double min, double max,
                                          std::optional<double> otherwise) {
  const Json* const value = Find(key);
  if (otherwise.has_value() && !object_.contains(std::string(key))) return *otherwise;
  const bool good = value != nullptr && value->is_number() && value->get<double>() >= min &&
                    value->get<double>() <= max;
  if (!good) return Refuse(key, absl::StrCat("a number from ", min, " to ", max));
  return value->get<double>();
}

absl::StatusOr<bool> ConfigReader::FlagOr(absl::string_view key, bool otherwise) {
  const Json* const value = Find(key);
  if (!object_.contains(std::string(key))) return otherwise;
  if (value == nullptr || !value->is_boolean()) return Refuse(key, "true or false");
  return value->get<bool>();
}

absl::Status ConfigReader::Only(absl::string_view key, std::initializer_list<Json> values) {
  known_.insert(std::string(key));
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) return absl::OkStatus();
  if (std::find(values.begin(), values.end(), *found) != values.end()) return absl::OkStatus();
  std::vector<std::string> words;
  for (const Json& value : values) words.push_back(Show(value));
  return Refuse(key, absl::StrJoin(words, " or "));
}

void ConfigReader::Ignore(std::initializer_list<absl::string_view> keys) {
  for (const absl::string_view key : keys) known_.insert(std::string(key));
}

absl::Status ConfigReader::Finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the key '", section_, key, "' (", Show(value),
                     ") is not known for this model, so that it may compute something else"));
  }
  return absl::OkStatus();
}

void IgnoreCommonKeys(ConfigReader& reader) {
  reader.Ignore({"model_type",
                 "architectures",
                 "_name_or_path",
                 "name_or_path",
                 "auto_map",
                 "_attn_implementation",
                 "_attn_implementation_autoset",
                 "attn_implementation",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "sep_token_id",
                 "dtype",
                 "torch_dtype",
                 "transformers_version",
                 "use_cache",
                 "initializer_range",
                 "gradient_checkpointing",
                 "task_specific_params",
                 "tokenizer_class",
                 "id2label",
                 "label2id",
                 "return_dict",
                 "output_attentions",
                 "output_hidden_states",
                 "chunk_size_feed_forward",
                 "problem_type",
                 "_num_labels"});
}

}  // namespace longhaul::model
