#include "daemon/config.h"

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "daemon/exposure.h"
#include "run/fields.h"

namespace longhaul::daemon {
namespace {

using run::Field;
using run::KeyLines;

constexpr uint64_t kConfigBytesMax = 1 << 20;

run::Parsed AddressValue(Address* target) {
  return {[target](absl::string_view text) -> absl::Status {
    LH_ASSIGN_OR_RETURN(*target, ParseAddress(text));
    return absl::OkStatus();
  }};
}

run::Parsed OptionalAddressValue(std::optional<Address>* target) {
  return {[target](absl::string_view text) -> absl::Status {
    LH_ASSIGN_OR_RETURN(*target, ParseAddress(text));
    return absl::OkStatus();
  }};
}

absl::StatusOr<absl::Duration> DurationWithin(absl::string_view text, absl::Duration min,
                                              absl::Duration max) {
  LH_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(text));
  if (duration >= min && duration <= max) return duration;
  return absl::InvalidArgumentError(absl::StrCat("must be from ", absl::FormatDuration(min), " to ",
                                                 absl::FormatDuration(max), ", got '", text, "'"));
}

run::Parsed DurationValue(absl::Duration* target, absl::Duration min, absl::Duration max) {
  return {[target, min, max](absl::string_view text) -> absl::Status {
    LH_ASSIGN_OR_RETURN(*target, DurationWithin(text, min, max));
    return absl::OkStatus();
  }};
}

run::Parsed OptionalDurationValue(std::optional<absl::Duration>* target, absl::Duration min,
                                  absl::Duration max) {
  return {[target, min, max](absl::string_view text) -> absl::Status {
    LH_ASSIGN_OR_RETURN(*target, DurationWithin(text, min, max));
    return absl::OkStatus();
  }};
}

// Less holds no stage of any model; most likely the unit was forgotten.
constexpr int64_t kMemoryMin = int64_t{16} << 20;

run::Parsed MemoryValue(int64_t* target) {
  return {[target](absl::string_view text) -> absl::Status {
    LH_ASSIGN_OR_RETURN(*target, ParseSize(text));
    if (*target >= kMemoryMin) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("must be at least 16 MiB, got '", text, "', which is ", *target,
                     *target == 1 ? " byte" : " bytes", "; write the unit, as in 4 GiB"));
  }};
}

// "cpu" or "cuda:N".
run::Parsed DeviceValue(std::optional<int>* cuda) {
  return {[cuda](absl::string_view text) -> absl::Status {
    constexpr int kNumberMax = 1023;
    int number = 0;
    absl::string_view digits = text;
    cuda->reset();
    if (text == "cpu") return absl::OkStatus();
    if (absl::ConsumePrefix(&digits, "cuda:") && !digits.empty() &&
        absl::c_all_of(digits, absl::ascii_isdigit) && absl::SimpleAtoi(digits, &number) &&
        number <= kNumberMax) {
      *cuda = number;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "must be 'cpu', or 'cuda:N' for card number N, counted from 0, got '", text, "'"));
  }};
}

run::Parsed NameValue(std::string what, std::string* target) {
  return {[what = std::move(what), target](absl::string_view text) -> absl::Status {
    LH_RETURN_IF_ERROR(ValidateName(what, text));
    *target = std::string(text);
    return absl::OkStatus();
  }};
}

// What both kinds of daemon have. The file's TLS paths are gathered apart because the section as a
// whole may be absent.
struct CommonFields {
  std::string folder;
  SecurityConfig security;
  TlsFiles tls;
  LogLevel log_level = LogLevel::kInfo;
  MetricsConfig metrics;
  std::string security_place;
};

std::vector<Field> FieldsOf(CommonFields& common) {
  return {
      {"folder", run::Text{&common.folder}, run::Presence::kRequired},
      {"insecure", run::Flag{&common.security.insecure}},
      {"tls.certificate", run::Text{&common.tls.certificate}},
      {"tls.key", run::Text{&common.tls.key}},
      {"tls.ca", run::Text{&common.tls.ca}},
      {"cluster_token_file", run::Text{&common.security.cluster_token_file}},
      {"log.level", run::Enum(&common.log_level, {"debug", "info", "warning", "error"})},
      {"metrics.listen", OptionalAddressValue(&common.metrics.listen)},
      {"metrics.insecure", run::Flag{&common.metrics.insecure}},
  };
}

// An address of the file and its key.
struct NamedAddress {
  std::string key;
  Address address;
};

absl::Status At(const KeyLines& lines, absl::string_view key, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(lines.Where(key), ": '", key, "': ", message));
}

absl::Status CheckTls(const KeyLines& lines, CommonFields& common) {
  const TlsFiles& tls = common.tls;
  const bool any = !tls.certificate.empty() || !tls.key.empty() || !tls.ca.empty();
  if (any && (tls.certificate.empty() || tls.key.empty() || tls.ca.empty())) {
    return At(lines, "tls", "needs all of certificate, key and ca");
  }
  if (any && common.security.insecure) {
    return At(lines, "insecure", "contradicts 'tls'; remove one of the two");
  }
  if (any && !common.security.cluster_token_file.empty()) {
    return At(
        lines, "cluster_token_file",
        "is for clusters without TLS; with 'tls' the certificates say who belongs; remove it");
  }
  if (!any && common.security.cluster_token_file.empty()) {
    return At(lines, "cluster_token_file",
              "is missing: without 'tls' the daemons of a cluster need a secret in common; name a "
              "file that only its owner may read (mode 0600), the same for all");
  }
  if (any) common.security.tls = tls;
  const std::string key = any ? "tls" : "cluster_token_file";
  common.security_place = absl::StrCat(lines.Where(key), ": '", key, "'");
  return absl::OkStatus();
}

absl::Status CheckExposure(const KeyLines& lines, const CommonFields& common,
                           const std::vector<NamedAddress>& addresses) {
  for (const NamedAddress& named : addresses) {
    if (IsLoopback(named.address) || common.security.tls || common.security.insecure) continue;
    return At(lines, named.key,
              absl::StrCat(WhyExposed(named.address),
                           "; give 'tls' (certificate, key, ca) or write 'insecure: true'"));
  }
  const std::optional<Address>& metrics = common.metrics.listen;
  if (metrics && !IsLoopback(*metrics) && !common.metrics.insecure) {
    return At(lines, "metrics.listen",
              absl::StrCat("'", ToString(*metrics),
                           "' is not a loopback address and metrics are served without TLS; write "
                           "'insecure: true' under 'metrics' if that is meant"));
  }
  return absl::OkStatus();
}

// Relative paths count from the folder of the configuration file.
void ResolvePaths(const std::string& file_name, CommonFields& common) {
  const std::filesystem::path base = std::filesystem::path(file_name).parent_path();
  const auto resolve = [&base](std::string& path) {
    if (!path.empty()) path = (base / path).lexically_normal().string();
  };
  resolve(common.folder);
  resolve(common.security.cluster_token_file);
  if (common.security.tls) {
    resolve(common.security.tls->certificate);
    resolve(common.security.tls->key);
    resolve(common.security.tls->ca);
  }
}

absl::StatusOr<KeyLines> ReadBoth(absl::string_view yaml, const std::string& file_name,
                                  std::vector<Field> own, CommonFields& common) {
  for (Field& field : FieldsOf(common)) own.push_back(std::move(field));
  LH_ASSIGN_OR_RETURN(KeyLines lines, run::ReadYaml(yaml, file_name, own));
  LH_RETURN_IF_ERROR(CheckTls(lines, common));
  return lines;
}

constexpr size_t kLinksMax = 4096;

std::vector<Field> LinkFields(LinkConfig& link) {
  return {{"from", NameValue("site name", &link.from), run::Presence::kRequired},
          {"to", NameValue("site name", &link.to), run::Presence::kRequired},
          {"latency_milliseconds", run::Real{&link.latency_milliseconds, 0, 1e6},
           run::Presence::kRequired},
          {"megabits_per_second", run::Real{&link.megabits_per_second, 1e-3, 1e9},
           run::Presence::kRequired}};
}

std::vector<Field> WorkerFields(WorkerConfig& config, int64_t& threads, int64_t& connections) {
  const absl::Duration day = absl::Hours(24);
  return {
      {"name", NameValue("node name", &config.name)},
      {"site", NameValue("site name", &config.site), run::Presence::kRequired},
      {"coordinator", AddressValue(&config.coordinator)},
      {"coordinator_name", run::Text{&config.coordinator_name}},
      {"data.listen", AddressValue(&config.data_listen)},
      {"data.advertise", OptionalAddressValue(&config.data_advertise)},
      {"data.connections", run::Whole{&connections, 1, 64}},
      {"trusted_network", run::Flag{&config.trusted_network}},
      {"device", DeviceValue(&config.cuda_device)},
      {"share_device", run::Flag{&config.share_device}},
      {"nccl", run::Flag{&config.nccl}},
      {"threads", run::Whole{&threads, 1, 4096, "auto"}},
      {"memory", MemoryValue(&config.memory_bytes)},
      {"peer_wait_max", OptionalDurationValue(&config.peer_wait_max, absl::Seconds(1), day)},
      {"transfer_max", DurationValue(&config.transfer_max, absl::Seconds(1), day)},
      {"drain_max", DurationValue(&config.drain_max, absl::ZeroDuration(), day)},
  };
}

absl::Status CheckWorkerAddresses(const KeyLines& lines, const WorkerConfig& config) {
  if (config.coordinator.port == 0 || IsWildcard(config.coordinator)) {
    return At(lines, "coordinator",
              absl::StrCat("'", ToString(config.coordinator), "' cannot be dialled"));
  }
  if (IsWildcard(config.data_listen) && !config.data_advertise) {
    return At(lines, "data.listen",
              absl::StrCat("'", ToString(config.data_listen),
                           "' means every interface; say in 'data.advertise' at which address "
                           "other workers reach this one"));
  }
  if (config.data_advertise && IsWildcard(*config.data_advertise)) {
    return At(lines, "data.advertise",
              absl::StrCat("'", ToString(*config.data_advertise), "' cannot be dialled"));
  }
  return absl::OkStatus();
}

absl::Status CheckDevice(const KeyLines& lines, const WorkerConfig& config, int64_t threads) {
  if (config.cuda_device && threads > 0) {
    return At(lines, "threads",
              absl::StrCat("is for workers that compute on processor cores; this one has 'device: "
                           "cuda:",
                           *config.cuda_device, "'; remove it"));
  }
  if (config.share_device && !config.cuda_device) {
    return At(lines, "share_device", "is for workers with a card ('device: cuda:N'); remove it");
  }
  if (!config.nccl && !config.cuda_device) {
    return At(lines, "nccl", "is for workers with a card ('device: cuda:N'); remove it");
  }
  if (config.share_device && config.memory_bytes == 0) {
    return At(lines, "share_device",
              "needs 'memory': how much of the card's memory this worker may use");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CoordinatorConfig> ParseCoordinatorConfig(absl::string_view yaml,
                                                         const std::string& file_name) {
  CoordinatorConfig config;
  CommonFields common;
  int64_t checkpoints_kept = config.checkpoints_kept;
  LH_ASSIGN_OR_RETURN(
      const KeyLines lines,
      ReadBoth(
          yaml, file_name,
          {{"listen", AddressValue(&config.listen)},
           {"lease", DurationValue(&config.lease, absl::Seconds(1), absl::Hours(1))},
           {"prepare_max", DurationValue(&config.prepare_max, absl::Seconds(1), absl::Hours(24))},
           {"ending_max", DurationValue(&config.ending_max, absl::Seconds(1), absl::Hours(24))},
           {"checkpoints_kept", run::Whole{&checkpoints_kept, 1, 1000}},
           {"links",
            run::Maps{kLinksMax, [&config] { return LinkFields(config.links.emplace_back()); }}}},
          common));
  LH_RETURN_IF_ERROR(CheckExposure(lines, common, {{"listen", config.listen}}));
  ResolvePaths(file_name, common);
  config.checkpoints_kept = static_cast<int>(checkpoints_kept);
  config.folder = common.folder;
  config.security = common.security;
  config.log_level = common.log_level;
  config.metrics = common.metrics;
  config.security_place = common.security_place;
  return config;
}

absl::StatusOr<WorkerConfig> ParseWorkerConfig(absl::string_view yaml,
                                               const std::string& file_name) {
  WorkerConfig config;
  CommonFields common;
  int64_t threads = 0;
  int64_t connections = 1;
  LH_ASSIGN_OR_RETURN(
      const KeyLines lines,
      ReadBoth(yaml, file_name, WorkerFields(config, threads, connections), common));
  LH_RETURN_IF_ERROR(CheckDevice(lines, config, threads));
  LH_RETURN_IF_ERROR(CheckWorkerAddresses(lines, config));
  LH_RETURN_IF_ERROR(CheckExposure(
      lines, common, {{"data.listen", config.data_listen}, {"coordinator", config.coordinator}}));
  ResolvePaths(file_name, common);
  config.threads = static_cast<int>(threads);
  config.connections = static_cast<int>(connections);
  config.folder = common.folder;
  config.security = common.security;
  config.log_level = common.log_level;
  config.metrics = common.metrics;
  config.security_place = common.security_place;
  return config;
}

absl::StatusOr<std::string> ReadConfigFile(const std::string& path) {
  return ReadFile(path, kConfigBytesMax);
}

}  // namespace longhaul::daemon
