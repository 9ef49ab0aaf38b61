// SshSession: the SSH protocol as bytes in and bytes out, by libssh2. Owns no socket and never
// blocks: libssh2 works on two memory buffers, so that it never stops in the middle of sending a
// packet, and kMore always means more bytes from the server. One thread. The only user of libssh2.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/ssh/ssh_algorithms.h"

namespace hvd {

class SshSession {
 public:
  enum class Step {
    kDone,
    kMore,    // call again after more bytes from the server
    kFailed,  // see error()
  };

  SshSession();
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // ---- the two buffers
  void Feed(std::string_view bytes);
  void FeedEnd();  // the connection is gone
  // No more bytes will arrive: the connection is gone, or the server has disconnected.
  bool gone() const { return fed_end_ || !goodbye_.empty(); }
  // The text of the server's disconnect message, if any.
  const std::string& goodbye() const { return goodbye_; }
  std::string_view Outgoing() const { return std::string_view(out_).substr(out_begin_); }
  void Consume(size_t count);

  // ---- in this order
  // False: libssh2 knows none of one kind; error() says so.
  bool Offer(const SshAlgorithms& algorithms);
  // `fd` is never read or written.
  Step Handshake(int fd);
  // What a server that is not SSH sent first; at most a line.
  const std::string& opening() const { return opening_; }
  bool is_ssh_server() const { return opening_.starts_with("SSH-"); }
  // The server's verified public key.
  std::string HostKey() const;

  // The authentication methods that the server offers this user.
  Step AskMethods(const std::string& user, std::vector<std::string>* methods);
  // Returns the signature, nothing while it is pending (call Login again later), or "" if it
  // failed.
  using Signer = std::function<std::optional<std::string>(std::string_view data)>;
  // `login_blob`: see LoginBlob.
  Step Login(const std::string& user, const std::string& login_blob, const Signer& signer);
  bool logged_in() const;

  Step OpenChannel();
  Step Exec(const std::string& command);

  // ---- while the command runs
  // Takes what the server's window has room for.
  size_t Write(std::string_view bytes);
  // Whether Write would accept anything.
  bool HasRoom() const;
  void SendEof();
  enum class Source { kStdout, kStderr };
  // Number of bytes read; 0: none now.
  size_t Read(Source source, char* buffer, size_t room);
  // Sends an SSH ignore message, so that no NAT or firewall drops the idle connection.
  void KeepAlive();

  struct End {
    std::string signal;  // "KILL"; if set, `code` is 0
    int code = 0;
  };
  // Set once the command has ended and all of its output was read.
  std::optional<End> Ended();
  // Sends a disconnect message.
  void Disconnect();

  // After a failed Handshake: no algorithms in common with the server.
  bool could_not_agree() const;
  std::string error() const;

 private:
  struct Raw;
  struct Callbacks;

  Step StepOf(int rc);

  std::unique_ptr<Raw> raw_;
  std::string in_, out_;
  size_t in_begin_ = 0, out_begin_ = 0;
  bool fed_end_ = false, dead_ = false;
  std::string opening_, goodbye_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_SESSION_H_
