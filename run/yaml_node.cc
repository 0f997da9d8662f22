#include "run/yaml_node.h"

#include <exception>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace longhaul::run {
namespace {

// Builds the tree from the parser's events. Keeps the first error and ignores what follows it; the
// text is short, so reading on costs nothing.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(absl::string_view file_name) : file_name_(file_name) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Add(MakeNode(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases ('*name') are not used here; write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    Fail(mark, absl::StrCat("anchors ('&", name, "') are not used here; write the value out"));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    YamlNode node = MakeNode(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    CheckTag(mark, tag);
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, YamlNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  const absl::Status& status() const { return status_; }
  YamlNode TakeRoot() { return std::move(root_); }

 private:
  struct Frame {
    YamlNode node;
    bool has_key = false;  // of a map: the next node is the value of the last key
    absl::flat_hash_map<std::string, int> key_lines = {};
  };

  static YamlNode MakeNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  void Fail(int line, absl::string_view message) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(FileLine(file_name_, line), ": ", message));
  }
  void Fail(const YAML::Mark& mark, absl::string_view message) { Fail(mark.line + 1, message); }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    Fail(mark, absl::StrCat("tags ('", tag, "') are not used here"));
  }

  void Open(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (!status_.ok()) return;
    if (stack_.size() >= kYamlDepthMax) {
      Fail(mark, absl::StrCat("nested deeper than ", kYamlDepthMax, " levels"));
      return;
    }
    stack_.push_back({MakeNode(kind, mark)});
  }

  void Close() {
    if (!status_.ok()) return;
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (!status_.ok()) return;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == YamlNode::Kind::kMap && !frame.has_key) {
      AddKey(frame, node);
      return;
    }
    frame.node.items.push_back(std::move(node));
    frame.has_key = false;
  }

  void AddKey(Frame& frame, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar) {
      Fail(node.line, "a key must be a word");
      return;
    }
    const auto [same, is_new] = frame.key_lines.try_emplace(node.text, node.line);
    if (!is_new) {
      Fail(node.line,
           absl::StrCat("the key '", node.text, "' is already given on line ", same->second));
      return;
    }
    frame.node.keys.push_back({node.text, node.line});
    frame.has_key = true;
  }

  const absl::string_view file_name_;
  absl::Status status_;
  std::vector<Frame> stack_;
  YamlNode root_;
};

}  // namespace

std::string FileLine(absl::string_view file_name, int line) {
  return line > 0 ? absl::StrCat(file_name, ":", line) : std::string(file_name);
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, absl::string_view file_name) {
  if (text.size() > kYamlBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, " has ", text.size(),
                                                   " bytes, more than the ", kYamlBytesMax,
                                                   " allowed for a configuration"));
  }
  if (!IsUtf8(text) || text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, " is not UTF-8 text"));
  }
  TreeBuilder builder(file_name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      LH_RETURN_IF_ERROR(builder.status());
      TreeBuilder second(file_name);
      if (parser.HandleNextDocument(second)) {
        return absl::InvalidArgumentError(
            absl::StrCat(file_name, " holds several documents ('---'); one is expected"));
      }
    }
  } catch (const YAML::Exception& error) {
    LH_RETURN_IF_ERROR(builder.status());
    return absl::InvalidArgumentError(
        absl::StrCat(FileLine(file_name, error.mark.line + 1), ": ", error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": ", error.what()));
  }
  return builder.TakeRoot();
}

}  // namespace longhaul::run
