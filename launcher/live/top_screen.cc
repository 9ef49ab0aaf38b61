#include "launcher/live/top_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <string>

#include "launcher/output/output.h"

namespace hvd {
namespace {

// The alternate screen, so that the previous text comes back; no cursor.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

}  // namespace

TopScreen::TopScreen(int in, int out) : in_(in), out_(out) {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) ::sigaddset(&taken, signal);
  ::sigprocmask(SIG_BLOCK, &taken, &before_);
  signals_ = UniqueFd(::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  Enter();
}

TopScreen::~TopScreen() {
  Leave();
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

// Reads keys immediately and without echo if this process is in the foreground: a background
// process must not change the terminal.
void TopScreen::Enter() {
  termios now{};
  if (::tcgetpgrp(in_) == ::getpgrp() && ::tcgetattr(in_, &now) == 0) {
    lines_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    (void)::tcsetattr(in_, TCSANOW, &now);
  }
  (void)WriteAll(out_, kEnter);
}

void TopScreen::Leave() {
  (void)WriteAll(out_, kLeave);
  if (lines_) (void)::tcsetattr(in_, TCSANOW, &*lines_);
  lines_.reset();
}

TableSize TopScreen::size() const {
  winsize size{};
  if (::ioctl(out_, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

// Overwrites line by line: clearing the screen first would flicker.
void TopScreen::Show(std::string_view text) {
  std::string shown = "\x1b[H";
  for (char c : text) {
    if (c == '\n') shown += "\x1b[K";
    shown += c;
  }
  (void)WriteAll(out_, shown + "\x1b[J");
}

bool TopScreen::ReadKeys() {
  std::array<char, 64> keys;
  const ssize_t got = ::read(in_, keys.data(), keys.size());
  if (got <= 0) {
    keys_ = false;
    return false;
  }
  return std::string_view(keys.data(), static_cast<size_t>(got)).find_first_of("qQ") !=
         std::string_view::npos;
}

bool TopScreen::ReadSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGTSTP) return true;
    Leave();
    ::raise(SIGSTOP);
    Enter();
  }
  return false;
}

TopScreen::Event TopScreen::Wait(int socket, int limit_ms) {
  std::array<pollfd, 3> entries{
      {{socket, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {keys_ && lines_ ? in_ : -1, POLLIN, 0}}};
  if (::poll(entries.data(), entries.size(), limit_ms) <= 0) return Event::kNothing;
  if (entries[1].revents != 0 && ReadSignals()) return Event::kLeave;
  if (entries[2].revents != 0 && ReadKeys()) return Event::kLeave;
  return Event::kSomething;
}

}  // namespace hvd
