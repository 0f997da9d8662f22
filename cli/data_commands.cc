// longhaul data prepare
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/context.h"
#include "cli/local_process.h"
#include "cli/option_values.h"
#include "cli/python.h"

namespace longhaul::cli {
namespace {

constexpr char kBytes[] = "bytes";

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string to;
  std::string format = "llmc";
  std::string documents = "files";
  std::string jsonl_field;
  std::string end_of_document = "auto";
  std::string width = "auto";
  bool force = false;
  bool install = false;
};

// Where the tool is, beside this program as builds and packages lay it out.
absl::StatusOr<std::string> ToolFolder() {
  LH_ASSIGN_OR_RETURN(const std::string program, ProgramFolder());
  const std::string folder = absl::StrCat(program, "/../share/longhaul/prepare");
  if (::access(absl::StrCat(folder, "/__main__.py").c_str(), R_OK) == 0) return folder;
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " is missing; install Longhaul with its share folder"));
}

// An input that begins with a dash must not be taken for an option.
std::string AsArgument(const std::string& path) {
  return !path.empty() && path[0] == '-' ? absl::StrCat("./", path) : path;
}

std::vector<std::string> ToolArguments(const Context& context, const PrepareOptions& options) {
  std::vector<std::string> arguments;
  for (const std::string& input : options.inputs) arguments.push_back(AsArgument(input));
  const auto add = [&](const char* name, const std::string& value) {
    arguments.push_back(absl::StrCat("--", name, "=", value));
  };
  add("tokenizer", options.tokenizer);
  add("to", options.to);
  add("format", options.format);
  add("documents", options.documents);
  add("end-of-document", options.end_of_document);
  add("width", options.width);
  add("output", context.output);
  if (!options.jsonl_field.empty()) add("jsonl-field", options.jsonl_field);
  if (options.force) arguments.push_back("--force");
  return arguments;
}

// Before a Python is looked for, or installed: who misspelt a name should hear of that.
absl::Status CheckReadable(const PrepareOptions& options) {
  std::vector<std::string> paths = options.inputs;
  if (options.tokenizer != kBytes) paths.push_back(options.tokenizer);
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) != 0) return ErrnoStatus(errno, "read", path);
  }
  return absl::OkStatus();
}

absl::Status Prepare(const Context& context, const PrepareOptions& options) {
  LH_RETURN_IF_ERROR(CheckReadable(options));
  LH_ASSIGN_OR_RETURN(const std::string tool, ToolFolder());
  const char* const home = std::getenv("HOME");
  LH_ASSIGN_OR_RETURN(
      const std::string python,
      FindPython({.needs_tokenizers = options.tokenizer != kBytes,
                  .install = options.install,
                  .folder = absl::StrCat(home != nullptr ? home : ".", "/.longhaul/python")}));
  std::vector<std::string> command = {python, tool};
  for (std::string& argument : ToolArguments(context, options)) {
    command.push_back(std::move(argument));
  }
  return Become(command);
}

}  // namespace

void RegisterDataCommands(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* data = app.add_subcommand("data", "make token files");
  data->require_subcommand(1);
  CLI::App* prepare = data->add_subcommand(
      "prepare", "turn text or JSON lines into a token file, in bounded memory");
  auto options = std::make_shared<PrepareOptions>();
  prepare
      ->add_option("inputs", options->inputs,
                   "text files, or JSON lines (*.jsonl, *.ndjson): one document an object")
      ->required();
  prepare
      ->add_option("--tokenizer", options->tokenizer,
                   "a tokenizer.json of Hugging Face's tokenizers, or bytes")
      ->required();
  prepare->add_option("--to", options->to, "the file to write; megatron: its name without .bin")
      ->required();
  prepare
      ->add_option("--format", options->format,
                   "llmc (headed), megatron (.bin and .idx), or raw (docs/formats.md)")
      ->check(OneOf({"llmc", "megatron", "raw"}))
      ->capture_default_str();
  prepare
      ->add_option("--documents", options->documents,
                   "what a document is in text: files, lines, or blank (parted by blank lines)")
      ->check(OneOf({"files", "lines", "blank"}))
      ->capture_default_str();
  prepare->add_option("--jsonl-field", options->jsonl_field,
                      "the field with the text (text); all inputs are then JSON lines");
  prepare
      ->add_option("--end-of-document", options->end_of_document,
                   "token or id behind each document; auto: the tokenizer's own; or none")
      ->capture_default_str();
  prepare->add_option("--width", options->width, "bits of a token: auto, 16 or 32")
      ->check(OneOf({"auto", "16", "32"}))
      ->capture_default_str();
  prepare->add_flag("--force", options->force, "replace what --to names");
  prepare->add_flag("--install", options->install,
                    "install tokenizers with pip into ~/.longhaul/python if no Python has it");
  AddOutputOption(*prepare, context);
  prepare->callback([&chosen, options] {
    chosen = [options](Context& c) { return Fail(Prepare(c, *options)); };
  });
}

}  // namespace longhaul::cli
