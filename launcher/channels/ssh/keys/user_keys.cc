#include "launcher/channels/ssh/keys/user_keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "configs/message_text.h"
#include "discovery/ssh_key.h"
#include "launcher/process/proc_file.h"

namespace hvd {
namespace {

constexpr mode_t kOthers = 0077;

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool OthersMayRead(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_uid == ::getuid() &&
         (info.st_mode & kOthers) != 0;
}

// The key blob in the text of a public key file: "ssh-ed25519 AAAA... comment".
std::string PublicBlob(const std::string& text) {
  size_t begin = text.find(' ');
  if (begin == std::string::npos) return "";
  size_t end = text.find_first_of(" \n\r", begin + 1);
  std::optional<std::string> blob =
      DecodeBase64(text.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
  return blob && KeyTypeOf(*blob) == text.substr(0, begin) ? *blob : "";
}

std::string NoteOf(const IdentityFile& file, PrivateKey::Problem problem) {
  std::string path = Printable(file.path, kMaxShownPath);
  switch (problem) {
    case PrivateKey::Problem::kNone: return "";
    case PrivateKey::Problem::kEncrypted:
      return path + " needs a passphrase (run ssh-add " + path + ")";
    case PrivateKey::Problem::kKind:
      return path + " is of a kind that only the ssh program can use";
    case PrivateKey::Problem::kNoKey: break;
  }
  return path + " is no private key";
}

IdentityFile ReadOne(const std::string& path) {
  IdentityFile file{path, "", nullptr, "", Exists(path + "-cert.pub")};
  std::string public_path = path + ".pub";
  if (!Exists(path)) {
    file.blob = PublicBlob(ReadSmallFile(public_path));
    if (!file.blob.empty()) file.note = path + " does not exist, only " + public_path;
    return file;
  }
  std::string text = ReadSmallFile(path);
  if (text.empty()) {
    file.note = path + " cannot be read";
    return file;
  }
  if (file.blob = PublicBlob(text); !file.blob.empty()) {
    file.note = path + " is a public key";
    return file;
  }
  PrivateKey::Parsed parsed = PrivateKey::Parse(text);
  file.blob = !parsed.blob.empty() ? parsed.blob : PublicBlob(ReadSmallFile(public_path));
  if (OthersMayRead(path)) {
    file.note = path + " may be read by others (run chmod 600 " + path + ")";
    return file;
  }
  file.note = NoteOf(file, parsed.problem);
  file.key = std::move(parsed.key);
  return file;
}

std::string NameOf(const AgentKey& key) { return "the agent's key " + Quoted(key.comment); }

}  // namespace

std::vector<IdentityFile> ReadIdentityFiles(const SshConfig& config) {
  std::vector<IdentityFile> files;
  for (const std::string& path : config.identity_files) {
    IdentityFile file = ReadOne(path);
    if (!file.blob.empty() || !file.note.empty()) files.push_back(std::move(file));
  }
  return files;
}

LoginKeys OrderKeys(const std::vector<IdentityFile>& files, const std::vector<AgentKey>& agent,
                    bool identities_only) {
  LoginKeys result;
  std::set<std::string> seen;
  auto add = [&](LoginKey key) {
    if (!CanSignWith(KeyTypeOf(key.blob))) {
      result.skipped_kinds = true;
      result.notes.push_back(key.name + " is of a kind that only the ssh program can use");
    } else if (seen.insert(key.blob).second) {
      result.keys.push_back(std::move(key));
    }
  };
  auto of_agent = [&](const std::string& blob) {
    return std::find_if(agent.begin(), agent.end(),
                        [&](const AgentKey& key) { return key.blob == blob; });
  };
  for (const IdentityFile& file : files) {
    auto key = file.blob.empty() ? agent.end() : of_agent(file.blob);
    if (key != agent.end()) add({NameOf(*key), key->blob, nullptr});
  }
  for (const AgentKey& key : agent) {
    if (!identities_only) add({NameOf(key), key.blob, nullptr});
  }
  for (const IdentityFile& file : files) {
    if (file.key) {
      add({Printable(file.path, kMaxShownPath), file.blob, file.key});
    } else if (file.blob.empty() || of_agent(file.blob) == agent.end()) {
      result.notes.push_back(file.note);
      if (!file.blob.empty() && !CanSignWith(KeyTypeOf(file.blob))) result.skipped_kinds = true;
    }
  }
  return result;
}

}  // namespace hvd
