#include "coordinator/host/database.h"

#include <sqlite3.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace longhaul::coordinator {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::BindText(int position, absl::string_view value) {
  const int code = sqlite3_bind_text64(statement_.get(), position, value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  LH_CHECK(code == SQLITE_OK, "bind ", position, ": ", code);
}

void Statement::BindWhole(int position, int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), position, value);
  LH_CHECK(code == SQLITE_OK, "bind ", position, ": ", code);
}

void Statement::BindReal(int position, double value) {
  const int code = sqlite3_bind_double(statement_.get(), position, value);
  LH_CHECK(code == SQLITE_OK, "bind ", position, ": ", code);
}

absl::StatusOr<bool> Statement::Next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : database_->Error(code);
  sqlite3_reset(statement_.get());
  if (!status.ok()) return status;
  return false;
}

absl::Status Statement::Run() {
  while (true) {
    LH_ASSIGN_OR_RETURN(const bool more, Next());
    if (!more) return absl::OkStatus();
  }
}

std::string Statement::Text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
}

int64_t Statement::Whole(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::Real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_.get(), column);
}

Database::~Database() { sqlite3_close(handle_); }

absl::Status Database::Error(int code) const {
  const std::string message = absl::StrCat(path_, ": ", sqlite3_errmsg(handle_));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, " (no space left on the device); free some space"));
    case SQLITE_IOERR:
      return absl::InternalError(absl::StrCat(message, "; look at the disk and its quota"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(message, "; the file is damaged: restore it from a copy or move it away"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(message, "; another process has it open"));
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  return Statement(*this, statement);
}

void Database::RollBack() {
  // SQLite rolls some errors back by itself; a second time is then an error without meaning.
  if (sqlite3_get_autocommit(handle_) == 0) {
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         const DatabaseSchema& schema) {
  LH_CHECK(static_cast<int>(schema.upgrades.size()) == schema.version - 1, schema.kind);
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->Error(code);
  LH_RETURN_IF_ERROR(database->SetUp(schema));
  return database;
}

absl::Status Database::SetUp(const DatabaseSchema& schema) {
  LH_RETURN_IF_ERROR(Execute("PRAGMA locking_mode=EXCLUSIVE"));
  LH_RETURN_IF_ERROR(Execute("PRAGMA journal_mode=WAL"));
  LH_RETURN_IF_ERROR(Execute("PRAGMA synchronous=FULL"));
  // Pages of the log before they move into the file: so few that a log that is lost, as when
  // somebody copies the file alone, holds the last writes only.
  LH_RETURN_IF_ERROR(Execute("PRAGMA wal_autocheckpoint=16"));
  // Takes the lock of the exclusive mode, which lasts until the file is closed.
  return Transact([&] { return CheckSchema(schema); });
}

absl::Status Database::CheckSchema(const DatabaseSchema& schema) {
  LH_RETURN_IF_ERROR(Execute(
      "CREATE TABLE IF NOT EXISTS schema_version (kind TEXT NOT NULL, version INTEGER NOT NULL)"));
  LH_ASSIGN_OR_RETURN(Statement select, Prepare("SELECT kind, version FROM schema_version"));
  LH_ASSIGN_OR_RETURN(const bool known, select.Next());
  if (!known) {
    LH_RETURN_IF_ERROR(Execute(schema.creation));
    LH_ASSIGN_OR_RETURN(Statement insert, Prepare("INSERT INTO schema_version VALUES (?, ?)"));
    insert.BindText(1, schema.kind);
    insert.BindWhole(2, schema.version);
    return insert.Run();
  }
  if (select.Text(0) != schema.kind) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is a ", select.Text(0), ", not a ", schema.kind));
  }
  const int64_t version = select.Whole(1);
  if (version == schema.version) return absl::OkStatus();
  if (version < 1 || version > schema.version) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " has schema version ", version, " but this build knows version ",
                     schema.version, "; use the build that wrote it, or a newer one"));
  }
  for (int64_t from = version; from < schema.version; ++from) {
    LH_RETURN_IF_ERROR(Execute(schema.upgrades[static_cast<size_t>(from - 1)]));
  }
  LH_ASSIGN_OR_RETURN(Statement update, Prepare("UPDATE schema_version SET version = ?"));
  update.BindWhole(1, schema.version);
  return update.Run();
}

}  // namespace longhaul::coordinator
