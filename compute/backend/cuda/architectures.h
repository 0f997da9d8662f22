// Which cards a build has code for, by the list that CMake was given.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_ARCHITECTURES_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_ARCHITECTURES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace longhaul::compute {

// `built` is CMAKE_CUDA_ARCHITECTURES with commas: "80-real,86-real,90". Machine code ("80-real")
// runs on cards of the same major and no lower minor number; PTX ("90-virtual") on every later
// card; "90" is both; "90a" runs on that card alone. Words that are no number ("native") are taken
// to fit, as what they stood for is not known any more.
bool HasCodeFor(absl::string_view built, int major, int minor);

// "8.0, 8.6, 9.0 and later"; "and later" if there is PTX.
std::string DescribeArchitectures(absl::string_view built);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_ARCHITECTURES_H_
