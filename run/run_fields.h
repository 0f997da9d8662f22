// Private to run/: the keys of a run, each in one place.
#ifndef LONGHAUL_RUN_RUN_FIELDS_H_
#define LONGHAUL_RUN_RUN_FIELDS_H_

#include <optional>
#include <vector>

#include "run/fields.h"
#include "run/run_spec.h"

namespace longhaul::run {

// Every key that a run's file may hold, bound to `spec`.
std::vector<Field> FileFields(RunSpec& spec);

// These and what only the stored form holds ("data.id").
std::vector<Field> StoredFields(RunSpec& spec);

// The first range or relation that does not hold. The key says where in a file to look.
std::optional<Problem> FindProblem(const RunSpec& spec);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_RUN_FIELDS_H_
