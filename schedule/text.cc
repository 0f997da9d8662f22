#include <string>

#include "absl/strings/str_cat.h"
#include "schedule/head_text.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"

namespace longhaul::schedule {
std::string ToText(const Instruction& instruction) {
  const KindInfo& info = Info(instruction.kind);
  std::string text(info.code);
  if (info.per_micro_batch) absl::StrAppend(&text, instruction.micro_batch);
  if (instruction.step_offset != 0) absl::StrAppend(&text, "+", instruction.step_offset);
  if (instruction.weight_version != 0) absl::StrAppend(&text, "@", instruction.weight_version);
  return text;
}

std::string HeadText(const Program& program) {
  std::string head = absl::StrCat("stage ", program.stage);
  if (program.replica != 0) absl::StrAppend(&head, " replica ", program.replica);
  return absl::StrCat(head, " slots ", program.slots, ":");
}

std::string ToText(const Program& program) {
  std::string text = HeadText(program);
  for (const Instruction& instruction : program.instructions) {
    absl::StrAppend(&text, " ", ToText(instruction));
  }
  return text;
}

}  // namespace longhaul::schedule
