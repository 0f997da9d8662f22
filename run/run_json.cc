#include <type_traits>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "run/run_fields.h"
#include "run/run_spec.h"
#include "run/yaml_node.h"

namespace longhaul::run {
namespace {

constexpr int64_t kSchema = 1;
constexpr size_t kJsonBytesMax = 1 << 20;

Json ToValue(const Whole& whole) {
  if (!whole.zero_word.empty() && *whole.value == 0) return whole.zero_word;
  return *whole.value;
}
Json ToValue(const Wholes& wholes) {
  if (wholes.value->size() != 1) return *wholes.value;
  return ToValue(Whole{wholes.value->data(), wholes.min, wholes.max, wholes.zero_word});
}
Json ToValue(const Unsigned& number) { return *number.value; }
Json ToValue(const Real& real) { return *real.value; }
Json ToValue(const Reals& reals) {
  Json list = Json::array();
  for (const Real& real : reals.values) list.push_back(*real.value);
  return list;
}
Json ToValue(const Flag& flag) { return *flag.value; }
Json ToValue(const Text& text) { return *text.value; }
Json ToValue(const Texts& texts) { return *texts.value; }
Json ToValue(const Choice& choice) {
  LH_CHECK(choice.get() < choice.words.size());
  return choice.words[choice.get()];
}
template <typename T>
requires std::is_same_v<T, Parsed> || std::is_same_v<T, Maps> Json ToValue(const T&) {
  LH_CHECK(false, "a run has no keys of this type");
  return Json();
}

// Stored runs are read by the table that reads files.
YamlNode ToNode(const Json& value) {
  YamlNode node;
  switch (value.type()) {
    case Json::value_t::object:
      node.kind = YamlNode::Kind::kMap;
      for (const auto& [key, item] : value.items()) {
        node.keys.push_back({key, 0});
        node.items.push_back(ToNode(item));
      }
      break;
    case Json::value_t::array:
      node.kind = YamlNode::Kind::kSequence;
      for (const Json& item : value) node.items.push_back(ToNode(item));
      break;
    case Json::value_t::null:
      break;
    case Json::value_t::string:
      node.kind = YamlNode::Kind::kScalar;
      node.text = value.get<std::string>();
      node.quoted = true;
      break;
    default:
      node.kind = YamlNode::Kind::kScalar;
      node.text = value.dump();
  }
  return node;
}

}  // namespace

std::string ToJson(const RunSpec& spec) {
  RunSpec copy = spec;  // fields are bound to what may be changed
  Json root = {{"schema", kSchema}};
  for (const Field& field : StoredFields(copy)) {
    const std::string pointer = "/" + absl::StrReplaceAll(field.key, {{".", "/"}});
    root[Json::json_pointer(pointer)] =
        std::visit([](const auto& typed) { return ToValue(typed); }, field.target);
  }
  // Invalid UTF-8, which Validate refuses, must not throw here.
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RunSpec> FromJson(absl::string_view json) {
  auto root = ParseJson(json, kJsonBytesMax);
  if (!root.ok()) return Annotate(root.status(), "stored run");
  LH_RETURN_IF_ERROR(Annotate(JsonSchema(*root, kSchema), "stored run"));
  root->erase("schema");
  RunSpec spec;
  LH_RETURN_IF_ERROR(ReadFields(ToNode(*root), "stored run", StoredFields(spec)).status());
  LH_RETURN_IF_ERROR(Annotate(Validate(spec), "stored run"));
  return spec;
}

}  // namespace longhaul::run
