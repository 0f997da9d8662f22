#include "compute/backend/cuda/emulated/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace longhaul::compute::emulated {
namespace {

void Take(const char* name, int& value) {
  const char* const text = std::getenv(name);
  if (text != nullptr) value = std::atoi(text);
}

std::string Text(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Machine MachineFromEnvironment() {
  Machine machine;
  Take("LONGHAUL_EMULATED_DEVICES", machine.devices);
  Take("LONGHAUL_EMULATED_DRIVER", machine.driver_version);
  Take("LONGHAUL_EMULATED_CAPABILITY", machine.capability);
  int mebibytes = static_cast<int>(machine.memory_bytes >> 20);
  Take("LONGHAUL_EMULATED_MEMORY_MEBIBYTES", mebibytes);
  machine.memory_bytes = static_cast<size_t>(mebibytes) << 20;
  machine.name = Text("LONGHAUL_EMULATED_NAME");
  machine.breaks = Text("LONGHAUL_EMULATED_BREAKS");
  return machine;
}

bool IsBroken(const Machine& machine) {
  return machine.fails || (!machine.breaks.empty() && access(machine.breaks.c_str(), F_OK) == 0);
}

}  // namespace longhaul::compute::emulated
