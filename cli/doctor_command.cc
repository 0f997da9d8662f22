// longhaul doctor
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/local_cluster.h"
#include "cli/local_process.h"
#include "cli/output.h"
#include "daemon/rpc/protocol.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

enum class Verdict { kGood, kWarning, kBad };

// One thing that was looked at, and the remedy in the text where it is not good.
struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string text;
};

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kBad:
      return "problem";
  }
  return "problem";
}

void CheckLocalProcesses(const Context& context, std::vector<Finding>& findings) {
  const auto cluster = ReadLocalCluster(context.LocalDir());
  if (!cluster.ok()) {
    findings.push_back({Verdict::kBad, "local cluster", std::string(cluster.status().message())});
    return;
  }
  if (!cluster->has_value()) return;
  for (const LocalProcess& process : (*cluster)->processes) {
    if (IsAlive(process)) {
      findings.push_back({Verdict::kGood, process.name, absl::StrCat("process ", process.pid)});
    } else {
      findings.push_back(
          {Verdict::kBad, process.name,
           absl::StrCat("not running; its log: ", context.LocalDir(), "/", process.name, "/log")});
    }
  }
}

void CheckNodes(Client& client, std::vector<Finding>& findings) {
  const auto nodes = client.ListNodes();
  if (!nodes.ok()) {
    findings.push_back({Verdict::kBad, "nodes", std::string(nodes.status().message())});
    return;
  }
  if (nodes->nodes().empty()) {
    findings.push_back({Verdict::kBad, "nodes",
                        "no worker has joined; start one with: longhauld worker --config FILE"});
  }
  const std::string own = daemon::OwnProtocol().build;
  for (const v1::NodeSummary& node : nodes->nodes()) {
    const std::string what = absl::StrCat("node ", node.node());
    if (node.state() != "connected") {
      findings.push_back({Verdict::kBad, what, absl::StrCat(node.state(), ": ", node.reason())});
    } else if (node.version() != own) {
      findings.push_back({Verdict::kWarning, what,
                          absl::StrCat("build ", node.version(), ", this command is ", own)});
    } else {
      findings.push_back(
          {Verdict::kGood, what,
           absl::StrCat("site ", node.site(), ", data address ", node.data_address())});
    }
  }
}

void CheckNumericClasses(Client& client, std::vector<Finding>& findings) {
  const auto nodes = client.ListNodes();
  if (!nodes.ok()) return;
  std::string first;
  for (const v1::NodeSummary& node : nodes->nodes()) {
    if (node.state() != "connected") continue;
    if (first.empty()) first = node.numeric_class();
    if (node.numeric_class() == first) continue;
    findings.push_back({Verdict::kWarning, "numeric class",
                        absl::StrCat("nodes differ (", first, " and ", node.numeric_class(),
                                     "): a run uses one class only, so that its bits agree")});
    return;
  }
}

void CheckCluster(const Context& context, std::vector<Finding>& findings) {
  auto client = Client::Connect(context);
  if (!client.ok()) {
    findings.push_back({Verdict::kBad, "coordinator", std::string(client.status().message())});
    return;
  }
  const auto version = (*client)->Version();
  if (version.ok()) {
    daemon::ProtocolVersions peers{version->oldest_protocol(), version->newest_protocol(),
                                   version->build_version()};
    const absl::Status match =
        daemon::CheckProtocol(daemon::OwnProtocol(), peers, "the coordinator");
    findings.push_back(
        {match.ok() ? Verdict::kGood : Verdict::kBad, "coordinator",
         match.ok() ? absl::StrCat((*client)->address(), ", build ", version->build_version())
                    : std::string(match.message())});
  }
  CheckNodes(**client, findings);
  CheckNumericClasses(**client, findings);
}

int Doctor(Context& context) {
  std::vector<Finding> findings;
  CheckLocalProcesses(context, findings);
  CheckCluster(context, findings);
  bool bad = false;
  std::vector<std::vector<std::string>> rows;
  for (const Finding& finding : findings) {
    bad |= finding.verdict == Verdict::kBad;
    if (context.json()) {
      PrintJsonLine(
          {{"verdict", Name(finding.verdict)}, {"what", finding.what}, {"text", finding.text}});
    }
    rows.push_back({Name(finding.verdict), finding.what, finding.text});
  }
  if (!context.json()) PrintTable(rows);
  return bad ? kExitFailed : kExitDone;
}

}  // namespace

void RegisterDoctorCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* doctor = app.add_subcommand("doctor", "look for what is wrong, and say the remedy");
  AddCommonOptions(*doctor, context);
  doctor->callback([&chosen] { chosen = Doctor; });
}

}  // namespace longhaul::cli
