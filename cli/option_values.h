// What options may be, and how --help says it.
#ifndef LONGHAUL_CLI_OPTION_VALUES_H_
#define LONGHAUL_CLI_OPTION_VALUES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace longhaul::cli {

// A whole number of at least 0, for options that count: a negative one would be taken as unsigned.
CLI::Validator WholeNumber();

// A number within bounds, which are part of it.
CLI::Validator Within(int64_t min, int64_t max);

// One of some words. --help and completion show them in braces.
CLI::Validator OneOf(std::vector<std::string> words);

// Help that names an option's values ("1 to 64"), not their type ("INT:1 to 64").
std::shared_ptr<CLI::Formatter> HelpFormatter();

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_OPTION_VALUES_H_
