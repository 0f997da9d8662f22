#include "coordinator/host/sqlite_journal.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "checkpoint/manifest.h"
#include "coordinator/host/database.h"
#include "coordinator/host/record_json.h"

namespace longhaul::coordinator {
namespace {

// Apart from the runs, whose records are written often and are to stay small.
constexpr char kManifestsTable[] =
    "CREATE TABLE manifests (run TEXT NOT NULL, term INTEGER NOT NULL, number INTEGER NOT NULL, "
    "step INTEGER NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (run, term, number, step));";

class SqliteJournal : public Journal {
 public:
  SqliteJournal(std::string path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  absl::StatusOr<JournalContents> Load() override {
    LH_RETURN_IF_ERROR(CheckPages());
    JournalContents contents;
    std::vector<StoredRun> runs;
    LH_RETURN_IF_ERROR(LoadTable("nodes", contents.nodes, NodeFromJson));
    LH_RETURN_IF_ERROR(LoadTable("runs", runs, RunFromJson));
    for (StoredRun& run : runs) {
      LH_RETURN_IF_ERROR(LoadManifests(run));
      contents.runs.push_back(std::move(run.record));
    }
    return contents;
  }

  absl::Status Write(const std::vector<const NodeRecord*>& nodes,
                     const std::vector<const RunRecord*>& runs) override {
    return database_->Transact([&]() -> absl::Status {
      for (const NodeRecord* node : nodes) {
        const std::string& name = node->facts.profile.name;
        const std::string json = NodeToJson(*node);
        LH_RETURN_IF_ERROR(CheckReadable("nodes", name, NodeFromJson(json).status()));
        LH_RETURN_IF_ERROR(Put("nodes", name, json));
      }
      for (const RunRecord* run : runs) {
        const std::string& name = run->spec.name;
        const std::string json = RunToJson(*run);
        LH_RETURN_IF_ERROR(CheckReadable("runs", name, RunFromJson(json).status()));
        LH_RETURN_IF_ERROR(Put("runs", name, json));
        LH_RETURN_IF_ERROR(PutManifests(*run));
      }
      return absl::OkStatus();
    });
  }

 private:
  absl::Status CheckPages() {
    LH_ASSIGN_OR_RETURN(Statement check, database_->Prepare("PRAGMA quick_check(1)"));
    LH_ASSIGN_OR_RETURN(const bool answered, check.Next());
    if (answered && check.Text(0) == "ok") return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_, ": ", answered ? check.Text(0) : "no answer",
                     "; the file is damaged: restore it from a copy or move it away"));
  }

  template <typename Record>
  absl::Status LoadTable(const char* table, std::vector<Record>& records,
                         absl::StatusOr<Record> (*parse)(absl::string_view)) {
    LH_ASSIGN_OR_RETURN(
        Statement select,
        database_->Prepare(absl::StrCat("SELECT name, payload FROM ", table, " ORDER BY name")));
    while (true) {
      LH_ASSIGN_OR_RETURN(const bool more, select.Next());
      if (!more) return absl::OkStatus();
      absl::StatusOr<Record> record = parse(select.Text(1));
      if (!record.ok()) {
        return absl::DataLossError(absl::StrCat(path_, ": ", table, ": ", select.Text(0), ": ",
                                                record.status().message()));
      }
      records.push_back(*std::move(record));
    }
  }

  // What Load would refuse must not be stored: the coordinator would not start again.
  absl::Status CheckReadable(const char* table, const std::string& name,
                             const absl::Status& read) const {
    if (read.ok()) return read;
    return absl::InternalError(absl::StrCat(
        path_, ": ", table, ": ", name, ": the record could not be read again: ", read.message()));
  }

  // Fills in the manifests that the record names.
  absl::Status LoadManifests(StoredRun& run) {
    if (run.checkpoint.has_value()) {
      LH_ASSIGN_OR_RETURN(run.record.checkpoint,
                          LoadManifest(run.record.spec.name, *run.checkpoint));
    }
    for (const StoredRun::Other& other : run.others) {
      LH_ASSIGN_OR_RETURN(checkpoint::Manifest manifest,
                          LoadManifest(run.record.spec.name, other.id));
      run.record.other_checkpoints.push_back({std::move(manifest), other.damage});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<checkpoint::Manifest> LoadManifest(const std::string& run, const ManifestId& id) {
    LH_ASSIGN_OR_RETURN(Statement select,
                        Manifests("SELECT payload FROM manifests WHERE", run, id));
    LH_ASSIGN_OR_RETURN(const bool found, select.Next());
    absl::StatusOr<checkpoint::Manifest> manifest = absl::NotFoundError("it is gone");
    if (found) manifest = checkpoint::ManifestFromJson(select.Text(0));
    if (manifest.ok()) return manifest;
    return absl::DataLossError(absl::StrCat(path_, ": manifests: ", run, " step ", id.step,
                                            " epoch ", ToString(id.epoch), ": ",
                                            manifest.status().message()));
  }

  // Those that are not there yet; removes those that the record does not name any more.
  absl::Status PutManifests(const RunRecord& run) {
    const std::string& name = run.spec.name;
    LH_ASSIGN_OR_RETURN(std::set<ManifestId> stored, StoredManifests(name));
    std::vector<const checkpoint::Manifest*> named;
    if (run.checkpoint.has_value()) named.push_back(&*run.checkpoint);
    for (const OtherCheckpoint& other : run.other_checkpoints) named.push_back(&other.manifest);
    for (const checkpoint::Manifest* manifest : named) {
      if (stored.erase(IdOf(*manifest)) == 0) LH_RETURN_IF_ERROR(PutManifest(name, *manifest));
    }
    for (const ManifestId& id : stored) {
      LH_ASSIGN_OR_RETURN(Statement remove, Manifests("DELETE FROM manifests WHERE", name, id));
      LH_RETURN_IF_ERROR(remove.Run());
    }
    return absl::OkStatus();
  }

  absl::Status PutManifest(const std::string& run, const checkpoint::Manifest& manifest) {
    const std::string json = checkpoint::ToJson(manifest);
    LH_RETURN_IF_ERROR(
        CheckReadable("manifests", run, checkpoint::ManifestFromJson(json).status()));
    LH_ASSIGN_OR_RETURN(Statement insert,
                        database_->Prepare("INSERT INTO manifests VALUES (?, ?, ?, ?, ?)"));
    insert.BindText(1, run);
    insert.BindWhole(2, manifest.epoch.term);
    insert.BindWhole(3, manifest.epoch.number);
    insert.BindWhole(4, manifest.step);
    insert.BindText(5, json);
    return insert.Run();
  }

  absl::StatusOr<std::set<ManifestId>> StoredManifests(const std::string& run) {
    LH_ASSIGN_OR_RETURN(
        Statement select,
        database_->Prepare("SELECT term, number, step FROM manifests WHERE run = ?"));
    select.BindText(1, run);
    std::set<ManifestId> ids;
    while (true) {
      LH_ASSIGN_OR_RETURN(const bool more, select.Next());
      if (!more) return ids;
      const Epoch epoch = {static_cast<uint32_t>(select.Whole(0)),
                           static_cast<uint32_t>(select.Whole(1))};
      ids.insert({epoch, select.Whole(2)});
    }
  }

  // `verb` about this one.
  absl::StatusOr<Statement> Manifests(const char* verb, const std::string& run,
                                      const ManifestId& id) {
    LH_ASSIGN_OR_RETURN(Statement statement,
                        database_->Prepare(absl::StrCat(
                            verb, " run = ? AND term = ? AND number = ? AND step = ?")));
    statement.BindText(1, run);
    statement.BindWhole(2, id.epoch.term);
    statement.BindWhole(3, id.epoch.number);
    statement.BindWhole(4, id.step);
    return statement;
  }

  absl::Status Put(const char* table, const std::string& name, const std::string& payload) {
    LH_ASSIGN_OR_RETURN(Statement insert, database_->Prepare(absl::StrCat(
                                              "INSERT OR REPLACE INTO ", table, " VALUES (?, ?)")));
    insert.BindText(1, name);
    insert.BindText(2, payload);
    return insert.Run();
  }

  const std::string path_;
  const std::unique_ptr<Database> database_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path) {
  LH_ASSIGN_OR_RETURN(
      std::unique_ptr<Database> database,
      Database::Open(
          path, {.kind = "coordinator journal",
                 .version = 2,
                 .creation = absl::StrCat("CREATE TABLE nodes (name TEXT PRIMARY KEY, payload TEXT "
                                          "NOT NULL) WITHOUT ROWID;"
                                          "CREATE TABLE runs (name TEXT PRIMARY KEY, payload TEXT "
                                          "NOT NULL) WITHOUT ROWID;",
                                          kManifestsTable),
                 .upgrades = {kManifestsTable}}));
  return std::unique_ptr<Journal>(new SqliteJournal(path, std::move(database)));
}

}  // namespace longhaul::coordinator
