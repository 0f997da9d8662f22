// longhaul doctor
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/local_cluster.h"
#include "cli/local_process.h"
#include "cli/node_device.h"
#include "cli/output.h"
#include "cli/target.h"
#include "daemon/rpc/protocol.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

enum class Verdict { kGood, kWarning, kBad };

// One thing that was looked at, and what to do where it is not good.
struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string text;
  std::string remedy;
};

Finding Good(std::string what, std::string text) {
  return {Verdict::kGood, std::move(what), std::move(text), ""};
}

Finding Warning(std::string what, std::string text, std::string remedy) {
  return {Verdict::kWarning, std::move(what), std::move(text), std::move(remedy)};
}

Finding Problem(std::string what, std::string text, std::string remedy) {
  return {Verdict::kBad, std::move(what), std::move(text), std::move(remedy)};
}

Finding Problem(std::string what, const absl::Status& status, std::string remedy) {
  return Problem(std::move(what), std::string(status.message()), std::move(remedy));
}

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
  const std::string dir = context.LocalDir();
  const auto cluster = ReadLocalCluster(dir);
  if (!cluster.ok()) {
    findings.push_back(Problem("local cluster", cluster.status(),
                               absl::StrCat("make ", dir, " readable, or name another by --dir")));
    return;
  }
  if (!cluster->has_value()) return;
  const auto& processes = (*cluster)->processes;
  const bool all_gone = Alive(processes).empty();
  for (const LocalProcess& process : processes) {
    if (IsAlive(process)) {
      findings.push_back(Good(process.name, absl::StrCat("process ", process.pid)));
      continue;
    }
    const std::string stop = all_gone ? "" : absl::StrCat("longhaul down --dir ", dir, ", then ");
    findings.push_back(Problem(
        process.name, absl::StrCat("not running; its log: ", dir, "/", process.name, "/log"),
        absl::StrCat("start the cluster again: ", stop, "longhaul up --detach --dir ", dir)));
  }
}

// The names of the local cluster's workers, where that is what is looked at; else nothing.
std::optional<std::set<std::string>> LocalNames(const Context& context) {
  if (!IsLocalTarget(context)) return std::nullopt;
  const auto cluster = ReadLocalCluster(context.LocalDir());
  if (!cluster.ok() || !cluster->has_value()) return std::nullopt;
  std::set<std::string> names;
  for (const LocalProcess& process : (*cluster)->processes) names.insert(process.name);
  return names;
}

// A node of a local cluster that does not serve.
Finding LocalFinding(const v1::NodeSummary& node, const std::set<std::string>& local,
                     const std::string& dir) {
  const std::string what = absl::StrCat("node ", node.node());
  const std::string text = absl::StrCat(node.state(), ": ", node.reason());
  if (!local.contains(node.node())) {
    return Warning(what, absl::StrCat("of an earlier local cluster with more workers; ", text),
                   "nothing; longhaul down and longhaul up with more --workers bring it back");
  }
  const std::string again =
      absl::StrCat("longhaul down --dir ", dir, ", then longhaul up --detach --dir ", dir);
  if (node.state() == "drained") return Warning(what, text, "to have it back: " + again);
  if (node.state() == "draining") return Warning(what, text, "wait until its run has left it");
  return Problem(what, text, absl::StrCat("see ", dir, "/", node.node(), "/log; then ", again));
}

std::string RemedyFor(const v1::NodeSummary& node) {
  if (node.state() == "draining") return "wait until its run has left it";
  const std::string start = "longhauld worker --config FILE";
  if (node.state() == "drained") return absl::StrCat("to have it back, restart it: ", start);
  return absl::StrCat("see on its host whether it runs and what its log says; start it with: ",
                      start);
}

void CheckNodes(const Context& context, const v1::ListNodesResponse& nodes,
                std::vector<Finding>& findings) {
  const std::optional<std::set<std::string>> local = LocalNames(context);
  if (nodes.nodes().empty()) {
    findings.push_back(
        Problem("nodes", "no worker has joined", "start one with: longhauld worker --config FILE"));
  }
  const std::string own = daemon::OwnProtocol().build;
  for (const v1::NodeSummary& node : nodes.nodes()) {
    const std::string what = absl::StrCat("node ", node.node());
    if (node.state() != "connected" && local.has_value()) {
      findings.push_back(LocalFinding(node, *local, context.LocalDir()));
    } else if (node.state() != "connected") {
      findings.push_back(
          Problem(what, absl::StrCat(node.state(), ": ", node.reason()), RemedyFor(node)));
    } else if (node.version() != own) {
      findings.push_back(Warning(
          what, absl::StrCat("build ", node.version(), ", this command is ", own),
          "install one build everywhere; until then they work together as far as their protocol"));
    } else {
      findings.push_back(
          Good(what, absl::StrCat("site ", node.site(), ", data address ", node.data_address(),
                                  ", computes on ", DeviceInShort(node))));
    }
  }
}

void CheckNumericClasses(const v1::ListNodesResponse& nodes, std::vector<Finding>& findings) {
  std::string first;
  for (const v1::NodeSummary& node : nodes.nodes()) {
    if (node.state() != "connected") continue;
    if (first.empty()) first = node.numeric_class();
    if (node.numeric_class() == first) continue;
    findings.push_back(Warning(
        "numeric class",
        absl::StrCat("nodes differ (", first, " and ", node.numeric_class(),
                     "): a run uses one class, so that its bits agree"),
        "have enough nodes of one class for a run: machines of one kind, with one build; or "
        "let a run use all (pipeline.numeric_class: any)"));
    return;
  }
}

void CheckCluster(const Context& context, std::vector<Finding>& findings) {
  auto client = Client::Connect(context);
  if (!client.ok()) {
    const std::string remedy =
        absl::IsUnavailable(client.status())
            ? "start it (longhaul up --detach; on a host of its own: longhauld coordinator "
              "--config FILE) or name the right one by --coordinator HOST:PORT"
            : "name the cluster's own credentials: --token-file, or --tls-ca, --tls-certificate "
              "and --tls-key";
    findings.push_back(Problem("coordinator", client.status(), remedy));
    return;
  }
  const std::string unanswered = "see its log, and restart it if that says nothing";
  const auto version = (*client)->Version();
  const auto nodes = (*client)->ListNodes();
  for (const absl::Status& status : {version.status(), nodes.status()}) {
    if (status.ok()) continue;
    findings.push_back(Problem("coordinator", status, unanswered));
    return;
  }
  const daemon::ProtocolVersions peers{version->oldest_protocol(), version->newest_protocol(),
                                       version->build_version()};
  const absl::Status match = daemon::CheckProtocol(daemon::OwnProtocol(), peers, "the coordinator");
  if (match.ok()) {
    findings.push_back(Good(
        "coordinator", absl::StrCat((*client)->address(), ", build ", version->build_version())));
  } else {
    findings.push_back(Problem("coordinator", match, "install the same build on both"));
  }
  CheckNodes(context, *nodes, findings);
  CheckNumericClasses(*nodes, findings);
}

// Whether workers of this host can have cards depends on it.
void CheckDaemonBuild(std::vector<Finding>& findings) {
  const auto build = DaemonBuild();
  if (build.ok()) {
    findings.push_back(Good("this build", *build));
  } else if (!absl::IsNotFound(build.status())) {
    findings.push_back(Problem("this build", build.status(), "install longhauld again"));
  }
}

int Doctor(Context& context) {
  std::vector<Finding> findings;
  CheckDaemonBuild(findings);
  if (IsLocalTarget(context)) CheckLocalProcesses(context, findings);
  CheckCluster(context, findings);
  bool bad = false;
  std::vector<std::vector<std::string>> rows;
  for (const Finding& finding : findings) {
    bad |= finding.verdict == Verdict::kBad;
    if (context.json()) {
      PrintJsonLine({{"verdict", Name(finding.verdict)},
                     {"what", finding.what},
                     {"text", finding.text},
                     {"remedy", finding.remedy}});
    }
    const std::string remedy =
        finding.remedy.empty() ? "" : absl::StrCat(". To do: ", finding.remedy);
    rows.push_back({Name(finding.verdict), finding.what, finding.text + remedy});
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
