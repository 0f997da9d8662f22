// Private to fields.cc and run_json.cc: one value from its node into its target.
#ifndef LONGHAUL_RUN_FIELD_VALUES_H_
#define LONGHAUL_RUN_FIELD_VALUES_H_

#include <string>

#include "run/fields.h"
#include "run/yaml_node.h"

namespace longhaul::run {

// Reads a scalar or a list of scalars into any target but Maps. Empty when done, else what is wrong
// ("expected a whole number, got 'abc'").
std::string ReadValue(const YamlNode& node, const Target& target);

// What is wrong with the value that the target holds; empty when it fits.
std::string CheckValue(const Target& target);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_FIELD_VALUES_H_
