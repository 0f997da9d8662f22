#include "run/fields.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "run/field_values.h"
#include "run/nearest.h"

namespace longhaul::run {
namespace {

std::string Joined(absl::string_view section, absl::string_view name) {
  return absl::StrCat(section, section.empty() || name.empty() ? "" : ".", name);
}

// Reads one table; lists of maps use one more reader for each element.
class Reader {
 public:
  // `place` is put in front of keys in messages and lines: "" or "links[2]".
  Reader(absl::string_view file_name, absl::Span<const Field> fields, std::string place,
         KeyLines& lines)
      : file_name_(file_name), fields_(fields), place_(std::move(place)), lines_(lines) {}

  absl::Status Read(const YamlNode& root) {
    LH_RETURN_IF_ERROR(ReadSection(root, ""));
    for (const Field& field : fields_) {
      if (field.presence == Presence::kRequired && !Contains(seen_, field.key)) {
        return absl::InvalidArgumentError(absl::StrCat(lines_.Where(Full(field.key)), ": the key '",
                                                       Full(field.key), "' is missing"));
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool Contains(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  std::string Full(absl::string_view key) const { return Joined(place_, key); }

  absl::Status Error(int line, absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(FileLine(file_name_, line), ": ", message));
  }

  absl::Status ReadSection(const YamlNode& node, const std::string& section) {
    if (node.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    if (node.kind != YamlNode::Kind::kMap) {
      return Error(node.line, section.empty() && place_.empty()
                                  ? "expected 'key: value' lines"
                                  : absl::StrCat("'", Full(section),
                                                 "' is a section; expected its "
                                                 "keys, not a value"));
    }
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const std::string key = Joined(section, node.keys[i].name);
      LH_RETURN_IF_ERROR(ReadKey(node.keys[i], node.items[i], section, key));
    }
    return absl::OkStatus();
  }

  absl::Status ReadKey(const YamlKey& name, const YamlNode& value, const std::string& section,
                       const std::string& key) {
    const std::vector<std::string> known = NamesIn(section);
    if (!Contains(known, name.name)) return UnknownKey(name, key, known);
    lines_.Set(Full(key), name.line);
    const auto field = std::find_if(fields_.begin(), fields_.end(),
                                    [&key](const Field& f) { return f.key == key; });
    if (field == fields_.end()) return ReadSection(value, key);
    seen_.push_back(key);
    if (const Maps* maps = std::get_if<Maps>(&field->target)) {
      return ReadMaps(value, name.line, key, *maps);
    }
    const std::string problem = ReadValue(value, field->target);
    if (problem.empty()) return absl::OkStatus();
    return Error(name.line, absl::StrCat("'", Full(key), "': ", problem));
  }

  absl::Status ReadMaps(const YamlNode& list, int line, const std::string& key, const Maps& maps) {
    if (list.kind != YamlNode::Kind::kSequence) {
      return Error(line, absl::StrCat("'", Full(key), "': expected a list"));
    }
    if (list.items.size() > maps.count_max) {
      return Error(line, absl::StrCat("'", Full(key), "': expected at most ", maps.count_max,
                                      " elements, got ", list.items.size()));
    }
    for (size_t i = 0; i < list.items.size(); ++i) {
      const std::string place = absl::StrCat(Full(key), "[", i, "]");
      lines_.Set(place, list.items[i].line);
      const std::vector<Field> fields = maps.add();
      LH_RETURN_IF_ERROR(Reader(file_name_, fields, place, lines_).Read(list.items[i]));
    }
    return absl::OkStatus();
  }

  absl::Status UnknownKey(const YamlKey& name, const std::string& key,
                          const std::vector<std::string>& known) const {
    // A key that exists elsewhere is misplaced rather than misspelt.
    for (const Field& field : fields_) {
      if (field.key == name.name || absl::EndsWith(field.key, absl::StrCat(".", name.name))) {
        return Error(name.line, absl::StrCat("unknown key '", Full(key), "'; did you mean '",
                                             Full(field.key), "'?"));
      }
    }
    const std::string& nearest = Nearest(name.name, known);
    return Error(name.line,
                 absl::StrCat("unknown key '", Full(key),
                              IsNear(name.name, nearest)
                                  ? absl::StrCat("'; did you mean '", nearest, "'?")
                                  : absl::StrCat("'; known here: ", absl::StrJoin(known, ", "))));
  }

  // Names of the keys and sections directly in a section, in the table's order.
  std::vector<std::string> NamesIn(const std::string& section) const {
    const std::string prefix = section.empty() ? "" : absl::StrCat(section, ".");
    std::vector<std::string> names;
    for (const Field& field : fields_) {
      if (!absl::StartsWith(field.key, prefix)) continue;
      const std::string rest = field.key.substr(prefix.size());
      const std::string name = rest.substr(0, rest.find('.'));
      if (!Contains(names, name)) names.push_back(name);
    }
    return names;
  }

  const absl::string_view file_name_;
  const absl::Span<const Field> fields_;
  const std::string place_;
  KeyLines& lines_;
  std::vector<std::string> seen_;
};

}  // namespace

std::string KeyLines::Where(absl::string_view key) const {
  while (!key.empty()) {
    if (const auto found = lines_.find(key); found != lines_.end()) {
      return FileLine(file_name_, found->second);
    }
    const size_t dot = key.rfind('.');
    key = dot == absl::string_view::npos ? "" : key.substr(0, dot);
  }
  return file_name_;
}

absl::StatusOr<KeyLines> ReadFields(const YamlNode& root, absl::string_view file_name,
                                    absl::Span<const Field> fields) {
  KeyLines lines(file_name);
  LH_RETURN_IF_ERROR(Reader(file_name, fields, "", lines).Read(root));
  return lines;
}

absl::StatusOr<KeyLines> ReadYaml(absl::string_view text, absl::string_view file_name,
                                  absl::Span<const Field> fields) {
  LH_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file_name));
  return ReadFields(root, file_name, fields);
}

std::optional<Problem> CheckFields(absl::Span<const Field> fields) {
  for (const Field& field : fields) {
    const std::string message = CheckValue(field.target);
    if (!message.empty()) return Problem{field.key, message};
  }
  return std::nullopt;
}

}  // namespace longhaul::run
