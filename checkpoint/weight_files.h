// Private to checkpoint/: the safetensors files of a directory of Hugging Face's.
#ifndef LONGHAUL_CHECKPOINT_WEIGHT_FILES_H_
#define LONGHAUL_CHECKPOINT_WEIGHT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/safetensors.h"

namespace longhaul::checkpoint {

// Either model.safetensors, which comes first as with transformers, or what the index names.
struct WeightFiles {
  std::string directory;
  std::vector<std::string> names;            // in the order of reading
  std::map<std::string, std::string> index;  // tensor -> name; empty: there is no index
  uint64_t bytes = 0;                        // of all files
};
// NotFound if there is neither. InvalidArgument names the index and what is wrong in it: a file
// outside the directory, say.
absl::StatusOr<WeightFiles> FindWeightFiles(const std::string& directory);

// Calls `take` for every tensor, one file in memory at a time. Refuses a file that holds other
// tensors than the index says. Errors name the file.
absl::Status ReadWeightFiles(const WeightFiles& files,
                             absl::FunctionRef<absl::Status(const TensorView&)> take);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_WEIGHT_FILES_H_
