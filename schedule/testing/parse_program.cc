#include "schedule/testing/parse_program.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "schedule/instruction_kind.h"

namespace longhaul::schedule {
namespace {

absl::Status Refuse(absl::string_view part, absl::string_view why) {
  constexpr size_t kShown = 40;
  return absl::InvalidArgumentError(
      absl::StrCat("program text: '", absl::CHexEscape(part.substr(0, kShown)), "' ", why));
}

// Takes the decimal digits at the front of `rest`; false if there are none or too many.
bool ConsumeNumber(absl::string_view& rest, int* value) {
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
  if (digits == 0 || !absl::SimpleAtoi(rest.substr(0, digits), value)) return false;
  rest.remove_prefix(digits);
  return true;
}

absl::StatusOr<Instruction> ParseInstruction(absl::string_view token, int stage) {
  absl::string_view rest = token;
  size_t letters = 0;
  while (letters < rest.size() && absl::ascii_isupper(rest[letters])) ++letters;
  const absl::string_view code = rest.substr(0, letters);
  rest.remove_prefix(letters);
  for (const KindInfo& info : AllKinds()) {
    if (info.code != code) continue;
    Instruction instruction{.kind = info.kind, .stage = stage};
    if (info.per_micro_batch && !ConsumeNumber(rest, &instruction.micro_batch)) {
      return Refuse(token, "needs the number of a micro-batch");
    }
    if (absl::ConsumePrefix(&rest, "+") && !ConsumeNumber(rest, &instruction.step_offset)) {
      return Refuse(token, "needs a step offset after '+'");
    }
    if (absl::ConsumePrefix(&rest, "@") && !ConsumeNumber(rest, &instruction.weight_version)) {
      return Refuse(token, "needs a weight version after '@'");
    }
    if (!rest.empty()) return Refuse(token, "has something after the instruction");
    return instruction;
  }
  return Refuse(token, "is not an instruction");
}

// "stage 1 slots 4", "stage 1 replica 2 slots 4"
absl::Status ParseHead(absl::string_view head, Program* program) {
  absl::string_view rest = head;
  bool good = absl::ConsumePrefix(&rest, "stage ") && ConsumeNumber(rest, &program->stage);
  if (good && absl::ConsumePrefix(&rest, " replica ")) {
    good = ConsumeNumber(rest, &program->replica) && program->replica > 0;
  }
  good = good && absl::ConsumePrefix(&rest, " slots ") && ConsumeNumber(rest, &program->slots) &&
         rest.empty() && program->slots > 0;
  if (good) return absl::OkStatus();
  return Refuse(head,
                "does not begin with 'stage S slots N:' or 'stage S replica R slots N:', R and N "
                "at least 1");
}

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) return Refuse(text, "has no ':' after 'stage S slots N'");
  Program program;
  LH_RETURN_IF_ERROR(ParseHead(text.substr(0, colon), &program));
  for (const absl::string_view token :
       absl::StrSplit(text.substr(colon + 1), absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    LH_ASSIGN_OR_RETURN(const Instruction instruction, ParseInstruction(token, program.stage));
    program.instructions.push_back(instruction);
  }
  return program;
}

}  // namespace longhaul::schedule
