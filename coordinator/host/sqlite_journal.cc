#include "coordinator/host/sqlite_journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/host/database.h"
#include "coordinator/host/record_json.h"

namespace longhaul::coordinator {
namespace {

class SqliteJournal : public Journal {
 public:
  SqliteJournal(std::string path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}

  absl::StatusOr<JournalContents> Load() override {
    LH_RETURN_IF_ERROR(CheckPages());
    JournalContents contents;
    LH_RETURN_IF_ERROR(LoadTable("nodes", contents.nodes, NodeFromJson));
    LH_RETURN_IF_ERROR(LoadTable("runs", contents.runs, RunFromJson));
    return contents;
  }

  absl::Status Write(const std::vector<const NodeRecord*>& nodes,
                     const std::vector<const RunRecord*>& runs) override {
    return database_->Transact([&]() -> absl::Status {
      for (const NodeRecord* node : nodes) {
        LH_RETURN_IF_ERROR(Put("nodes", node->facts.profile.name, NodeToJson(*node)));
      }
      for (const RunRecord* run : runs) {
        LH_RETURN_IF_ERROR(Put("runs", run->spec.name, RunToJson(*run)));
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
      Database::Open(path, {.kind = "coordinator journal",
                            .version = 1,
                            .creation = "CREATE TABLE nodes (name TEXT PRIMARY KEY, payload TEXT "
                                        "NOT NULL) WITHOUT ROWID;"
                                        "CREATE TABLE runs (name TEXT PRIMARY KEY, payload TEXT "
                                        "NOT NULL) WITHOUT ROWID;"}));
  return std::unique_ptr<Journal>(new SqliteJournal(path, std::move(database)));
}

}  // namespace longhaul::coordinator
