#include "base/json.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace longhaul {
namespace {

// Builds the value from the parser's events; false from an event ends parsing.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    Frame& frame = stack_.back();
    if (frame.value.contains(value)) {
      return Fail(absl::StrCat("the key '", value, "' is given twice"));
    }
    frame.key = std::move(value);
    return true;
  }
  // The parser's own message quotes the input, which may be long and need not be text.
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

  const std::string& problem() const { return problem_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  struct Frame {
    Json value;
    std::string key = {};
  };

  bool Fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool Open(Json value) {
    if (stack_.size() >= kJsonDepthMax) {
      return Fail(absl::StrCat("nested deeper than ", kJsonDepthMax, " levels"));
    }
    stack_.push_back({std::move(value)});
    return true;
  }

  bool Close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    return Add(std::move(value));
  }

  bool Add(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = stack_.back(); frame.value.is_array()) {
      frame.value.push_back(std::move(value));
    } else {
      frame.value[frame.key] = std::move(value);
    }
    return true;
  }

  std::vector<Frame> stack_;
  Json root_;
  std::string problem_;
};

absl::Status Expected(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", key, "' is not ", what));
}

absl::StatusOr<const Json*> Member(const Json& object, absl::string_view key) {
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  const auto found = object.find(std::string(key));
  if (found == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("'", key, "' is missing"));
  }
  return &*found;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "JSON text of ", text.size(), " bytes, more than the ", bytes_max, " allowed here"));
  }
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(builder.problem());
  }
  return builder.TakeRoot();
}

absl::StatusOr<std::string> JsonText(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  if (!member->is_string()) return Expected(key, "text");
  return member->get<std::string>();
}

absl::StatusOr<bool> JsonFlag(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  if (!member->is_boolean()) return Expected(key, "true or false");
  return member->get<bool>();
}

absl::StatusOr<int64_t> JsonWhole(const Json& object, absl::string_view key, int64_t min,
                                  int64_t max) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  const bool too_big =
      member->is_number_unsigned() && member->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!member->is_number_integer() || too_big || member->get<int64_t>() < min ||
      member->get<int64_t>() > max) {
    return Expected(key, absl::StrCat("a whole number from ", min, " to ", max));
  }
  return member->get<int64_t>();
}

absl::StatusOr<double> JsonReal(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  if (!member->is_number()) return Expected(key, "a number");
  return member->get<double>();
}

absl::StatusOr<const Json*> JsonArray(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  if (!member->is_array()) return Expected(key, "a list");
  return member;
}

absl::StatusOr<const Json*> JsonObject(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* member, Member(object, key));
  if (!member->is_object()) return Expected(key, "an object");
  return member;
}

absl::Status JsonOnlyKeys(const Json& object, const std::set<std::string>& known) {
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  for (const auto& [key, value] : object.items()) {
    if (known.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown key '", key, "'; known here: ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

absl::Status JsonSchema(const Json& object, int64_t schema) {
  LH_ASSIGN_OR_RETURN(const int64_t found, JsonWhole(object, "schema", 0, INT64_MAX));
  if (found == schema) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has schema version ", found, "; this build reads version ", schema));
}

}  // namespace longhaul
