#include "daemon/host_resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace longhaul::daemon {
namespace {

// Files of /proc and /sys have no length, so they are read as streams. Empty when unreadable.
std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Folders of this process's cgroup (version 2) from the innermost outwards.
std::vector<std::string> CgroupFolders() {
  std::vector<std::string> folders;
  for (const absl::string_view line : absl::StrSplit(ReadSystemFile("/proc/self/cgroup"), '\n')) {
    absl::string_view path = line;
    if (!absl::ConsumePrefix(&path, "0::")) continue;
    std::string folder(path);
    while (folder.size() > 1) {
      folders.push_back(absl::StrCat("/sys/fs/cgroup", folder));
      folder = folder.substr(0, folder.rfind('/'));
    }
  }
  folders.push_back("/sys/fs/cgroup");
  return folders;
}

int64_t AvailableMemory() {
  for (const absl::string_view line : absl::StrSplit(ReadSystemFile("/proc/meminfo"), '\n')) {
    absl::string_view value = line;
    if (!absl::ConsumePrefix(&value, "MemAvailable:")) continue;
    int64_t kibibytes = 0;
    if (absl::SimpleAtoi(absl::StripSuffix(absl::StripAsciiWhitespace(value), " kB"), &kibibytes)) {
      return kibibytes * 1024;
    }
  }
  return 0;
}

int64_t MemoryWithin(const std::vector<std::string>& cgroups) {
  int64_t memory = AvailableMemory();
  for (const std::string& folder : cgroups) {
    const int64_t left = CgroupMemoryLeft(ReadSystemFile(folder + "/memory.max"),
                                          ReadSystemFile(folder + "/memory.current"),
                                          ReadSystemFile(folder + "/memory.stat"));
    if (left < 0) continue;
    memory = memory == 0 ? left : std::min(memory, left);
  }
  return memory;
}

int CoresWithin(const std::vector<std::string>& cgroups) {
  cpu_set_t set;
  int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  for (const std::string& folder : cgroups) {
    const int quota = ParseCpuMax(ReadSystemFile(folder + "/cpu.max"));
    if (quota > 0) cores = std::min(cores, quota);
  }
  return std::max(cores, 1);
}

std::string HostId() {
  std::string id(absl::StripAsciiWhitespace(ReadSystemFile("/etc/machine-id")));
  std::array<char, HOST_NAME_MAX + 1> name = {};
  const bool named = gethostname(name.data(), name.size() - 1) == 0;
  // Containers made from one image share its machine-id but not its host name.
  return absl::StrCat(named ? name.data() : "host", id.empty() ? "" : "-", id.substr(0, 12));
}

std::string ProcessorName() {
  for (const absl::string_view line : absl::StrSplit(ReadSystemFile("/proc/cpuinfo"), '\n')) {
    absl::string_view value = line;
    if (!absl::ConsumePrefix(&value, "model name")) continue;
    return std::string(
        absl::StripAsciiWhitespace(value.substr(std::min(value.find(':') + 1, value.size()))));
  }
  return "";
}

}  // namespace

int64_t OwnResidentBytes() {
  // Pages: all, then those in memory, then others.
  const std::vector<std::string> fields = absl::StrSplit(ReadSystemFile("/proc/self/statm"), ' ');
  int64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

HostResources ReadHostResources() {
  const std::vector<std::string> cgroups = CgroupFolders();
  return {HostId(), CoresWithin(cgroups), MemoryWithin(cgroups), ProcessorName()};
}

int64_t CgroupMemoryLeft(absl::string_view max, absl::string_view current, absl::string_view stat) {
  const int64_t limit = ParseCgroupLimit(max);
  if (limit < 0) return -1;
  int64_t used = std::max<int64_t>(ParseCgroupLimit(current), 0);
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::ConsumePrefix(&line, "inactive_file ")) continue;
    used = std::max<int64_t>(used - std::max<int64_t>(ParseCgroupLimit(line), 0), 0);
  }
  return std::max<int64_t>(limit - used, 0);
}

int64_t ParseCgroupLimit(absl::string_view text) {
  int64_t limit = -1;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &limit) && limit >= 0 ? limit : -1;
}

int ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(text), ' ');
  int64_t quota = 0;
  int64_t period = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
    return 0;
  }
  return static_cast<int>(std::min<int64_t>((quota + period - 1) / period, 65536));
}

}  // namespace longhaul::daemon
