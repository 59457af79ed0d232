#!/bin/sh
# attacks.sh NAME [PORT]: what somebody may try inside a dev server. Every attack is bounded, and ends by itself.
# PORT is that of the API on this machine. The last line of output says what was achieved; the status is 0 only if
# the attack took place.
set -u
attack=$1
port=${2:-0}

case $attack in
process-name)
    # The kernel allows any byte but NUL and a slash in the name of a process.
    name=$(printf '/tmp/\377\033[2Jx')
    [ -x "$name" ] || cp /bin/sleep "$name" || exit 1
    "$name" 20 >/dev/null 2>&1 &
    sleep 0.2
    LC_ALL=C grep -q "$(printf '\377')" "/proc/$!/comm" || exit 1
    echo "a process has the name"
    ;;
deep-tree)
    # Deeper than a recursive walk can go, in the home and in the workspace.
    perl -e 'for my $top (@ARGV) { chdir $top or exit 1; mkdir "deep"; chdir "deep" or exit 1;
        for (1 .. 2100) { mkdir "d"; chdir "d" or exit 1 } } print "2100 levels, twice\n"' "$HOME" /workspace || exit 1
    ;;
forks)
    perl -e 'my $made = 0; for (1 .. 300) { my $pid = fork; last unless defined $pid;
        if (!$pid) { close STDOUT; close STDERR; sleep 5; exit } $made++ } print "$made processes\n"; exit($made ? 0 : 1)' \
        || exit 1
    ;;
ports)
    # The whole range that dev servers get their own ports from.
    perl -MSocket -e 'my ($held, @held) = (0); for my $port (30000 .. 32767) { socket(my $s, PF_INET, SOCK_STREAM, 0) or last;
        if (bind($s, sockaddr_in($port, INADDR_ANY)) && listen($s, 1)) { push @held, $s; $held++ } }
        print "$held ports\n"; exit 1 unless $held; exit 0 if fork; close STDOUT; close STDERR; sleep 5' || exit 1
    ;;
files)
    perl -e 'mkdir "$ENV{HOME}/many"; for (1 .. 5000) { open my $f, ">", "$ENV{HOME}/many/$_" or exit 1; print $f "x" }' \
        || exit 1
    head -c 50000000 /dev/zero >"$HOME/large" || exit 1
    echo "5000 files and 50 MB"
    ;;
nvidia-smi)
    mkdir -p "$HOME/bin" "$HOME/.local/bin"
    printf '#!/bin/sh\nprintf "gpu 1 1 0\\nssh 1.5\\n\\377\\n%%s\\n" NaN\n' >"$HOME/bin/nvidia-smi"
    chmod +x "$HOME/bin/nvidia-smi"
    cp "$HOME/bin/nvidia-smi" "$HOME/.local/bin/nvidia-smi"
    "$HOME/bin/nvidia-smi" | grep -aq "ssh 1.5" || exit 1
    echo "another nvidia-smi"
    ;;
notices)
    # Pipes, links and folders under the names of notices.
    for name in WARN_EXPIRES_IN_5MIN.txt WARN_EXPIRES_IN_15MIN.txt; do
        rm -rf "${HOME:?}/$name" "/workspace/$name"
        mkfifo "$HOME/$name" "/workspace/$name" || exit 1
    done
    ln -sfn /dev/zero "$HOME/WARN_IDLE.txt" || exit 1
    mkdir -p "$HOME/OOM_DETECTED.txt/folder" || exit 1
    echo "pipes, links and folders"
    ;;
links)
    ln -sfn / "$HOME/root" && ln -sfn "$HOME/loop" "$HOME/loop" || exit 1
    [ -d "$HOME/root/etc" ] || exit 1
    echo "links to the root and to itself"
    ;;
bad-logins)
    perl -MIO::Socket::INET -e 'my %told; for (1 .. 25) {
        my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or next;
        my $body = "{\"timestamp\": " . time . ", \"nonce\": \"$_\", \"proof\": \"00\"}";
        print $s "POST /v1/auth/local-login HTTP/1.1\r\nHost: 127.0.0.1:$ARGV[0]\r\nConnection: close\r\n"
            . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
        my $line = <$s> // ""; $told{$1}++ if $line =~ / (\d+) / }
        print join(" and ", map { "answers $_" } sort keys %told), "\n"; exit(%told ? 0 : 1)' "$port" || exit 1
    ;;
silent-connections)
    perl -MIO::Socket::INET -e 'my @held; for (1 .. 1300) {
        my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or last;
        print $s "GET /health HTTP/1.1\r\nHost: " if $_ % 2; $s->flush; push @held, $s }
        print scalar(@held), " connections\n"; exit(1) unless @held >= 1000;
        exit 0 if fork; close STDOUT; close STDERR; sleep 5' "$port" || exit 1
    ;;
large-body)
    perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit 1;
        $SIG{PIPE} = "IGNORE"; alarm 15;
        print $s "POST /v1/jobs/submit HTTP/1.1\r\nHost: 127.0.0.1:$ARGV[0]\r\n"
            . "Content-Type: application/json\r\nContent-Length: 30000000\r\n\r\n";
        for (1 .. 300) { print $s "[" x 100000 or last } $s->flush;
        my $line = <$s> // ""; print $line =~ / (\d+) / ? "answer $1\n" : "connection closed\n"' "$port" || exit 1
    ;;
*)
    echo "There is no attack $attack." >&2
    exit 2
    ;;
esac
exit 0
