#include "scheduler/daemon/accounts.h"

#include <charconv>

#include "scheduler/daemon/state_file.h"

namespace gridloom::broker {
namespace {

constexpr const char* kAccountsFile = "accounts.json";

/// The names in the file.
template <typename Account, typename Visit>
void ForEachAccountField(Account& account, const Visit& visit) {
  visit("launches", account.launches);
  visit("faults", account.faults);
  visit("slices", account.slices);
  visit("ctas", account.ctas);
  visit("copied_bytes", account.copied_bytes);
  visit("peak_memory_bytes", account.peak_memory_bytes);
  visit("device_seconds", account.device_seconds);
  visit("simulated_seconds", account.simulated_seconds);
}

}  // namespace

Result<Accounts> ParseAccounts(std::string_view text, const std::string& path) {
  GL_TRY(tenants, ParseTenants(text, path, "file of accounts"));
  Accounts accounts;
  for (const auto& [name, fields] : tenants.items()) {
    bool good = fields.is_object();
    ForEachAccountField(accounts[name], [&, &fields = fields](const char* key, auto& value) {
      if (good && fields.contains(key)) good = TakeNumber(fields[key], &value);
    });
    if (!good) return Error{path + ": the account of " + name + " is damaged"};
  }
  return accounts;
}

std::string AccountsText(const Accounts& accounts) {
  TenantsText text;
  for (const auto& [name, account] : accounts) {
    std::string fields;
    ForEachAccountField(account, [&](const char* key, const auto& value) {
      fields += fields.empty() ? "{\"" : ", \"";
      fields += key;
      fields += "\": ";
      char number[40];
      fields.append(number, std::to_chars(number, number + sizeof number, value).ptr);
    });
    text.Add(name, fields + "}");
  }
  return text.Finish();
}

Result<Accounts> ReadAccounts(StateFolder& folder) {
  GL_TRY(text, folder.Read(kAccountsFile));
  return text ? ParseAccounts(*text, folder.path() + "/" + kAccountsFile) : Accounts{};
}

Status WriteAccounts(StateFolder& folder, const Accounts& accounts) {
  return folder.Replace(kAccountsFile, AccountsText(accounts));
}

}  // namespace gridloom::broker
