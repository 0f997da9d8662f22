// YAML text as a tree that knows its lines, for configuration files written by people.
#ifndef LONGHAUL_RUN_YAML_NODE_H_
#define LONGHAUL_RUN_YAML_NODE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::run {

// Longest text and deepest nesting that ParseYaml accepts.
inline constexpr size_t kYamlBytesMax = 1 << 20;
inline constexpr size_t kYamlDepthMax = 32;

struct YamlKey {
  std::string name;
  int line = 0;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                 // 1-based; 0: not known
  std::string text;             // kScalar
  bool quoted = false;          // kScalar: written as text, so never a number or a word like `true`
  std::vector<YamlKey> keys;    // kMap, in the file's order, each name once
  std::vector<YamlNode> items;  // kSequence: elements; kMap: the values of `keys`
};

// One document of plain maps, sequences and scalars. InvalidArgument ("FILE:LINE: what") for bad
// syntax, text that is not UTF-8, a key that is given twice or is not a scalar, anchors, aliases,
// tags, a second document, and whatever exceeds the limits above. An empty text is kNull.
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, absl::string_view file_name);

// "FILE:LINE", or "FILE" where the line is not known.
std::string FileLine(absl::string_view file_name, int line);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_YAML_NODE_H_
