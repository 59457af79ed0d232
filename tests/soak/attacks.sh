#!/bin/sh
# attacks.sh NAME [PORT]: what somebody may try inside a dev server. Every attack is bounded, and ends by itself.
# PORT is that of the API on this machine.
set -u
attack=$1
port=${2:-0}

case $attack in
process-name)
    # The kernel allows any byte but NUL and a slash in the name of a process.
    name=$(printf '/tmp/\377\033[2Jx')
    cp /bin/sleep "$name" && { "$name" 20 >/dev/null 2>&1 & }
    ;;
deep-tree)
    # Deeper than a recursive walk can go, in the home and in the workspace.
    perl -e 'for my $top (@ARGV) { chdir $top or next; mkdir "deep"; chdir "deep";
        for (1 .. 2100) { mkdir "d"; chdir "d" or last } }' "$HOME" /workspace
    ;;
forks)
    perl -e 'for (1 .. 100) { my $pid = fork; last unless defined $pid; if (!$pid) { sleep 5; exit } } sleep 5' &
    ;;
ports)
    # From the range that dev servers get their own ports from.
    perl -MSocket -e 'my @held; for my $port (30000 .. 30500) { socket(my $s, PF_INET, SOCK_STREAM, 0) or last;
        push @held, $s if bind($s, sockaddr_in($port, INADDR_ANY)) && listen($s, 1) } sleep 5' &
    ;;
files)
    perl -e 'mkdir "$ENV{HOME}/many"; for (1 .. 2000) { open my $f, ">", "$ENV{HOME}/many/$_" or last; print $f "x" }'
    head -c 20000000 /dev/zero >"$HOME/large"
    ;;
nvidia-smi)
    mkdir -p "$HOME/bin" "$HOME/.local/bin"
    printf '#!/bin/sh\nprintf "gpu 1 1 0\\nssh 1.5\\n\\377\\n%%s\\n" NaN\n' >"$HOME/bin/nvidia-smi"
    chmod +x "$HOME/bin/nvidia-smi"
    cp "$HOME/bin/nvidia-smi" "$HOME/.local/bin/nvidia-smi"
    ;;
notices)
    # Pipes, links and folders under the names of notices.
    for name in WARN_EXPIRES_IN_5MIN.txt WARN_EXPIRES_IN_15MIN.txt NOTICE.txt; do
        rm -rf "${HOME:?}/$name"
        mkfifo "$HOME/$name" || ln -s /dev/zero "$HOME/$name"
    done
    mkdir -p "$HOME/WARN_EXPIRES_IN_30MIN.txt/folder"
    ;;
links)
    ln -sfn / "$HOME/root"
    ln -sfn "$HOME/loop" "$HOME/loop"
    ;;
bad-logins)
    perl -MIO::Socket::INET -e 'for (1 .. 25) {
        my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or last;
        my $body = "{\"timestamp\": " . time . ", \"nonce\": \"$_\", \"proof\": \"00\"}";
        print $s "POST /v1/auth/local-login HTTP/1.1\r\nHost: 127.0.0.1:$ARGV[0]\r\nConnection: close\r\n"
            . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
        local $/; <$s> }' "$port"
    ;;
silent-connections)
    perl -MIO::Socket::INET -e 'my @held; for (1 .. 100) {
        my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or last;
        print $s "GET /health HTTP/1.1\r\nHost: " if $_ % 2; $s->flush; push @held, $s } sleep 5' "$port" &
    ;;
large-body)
    perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit;
        $SIG{PIPE} = "IGNORE"; alarm 5;
        print $s "POST /v1/jobs/submit HTTP/1.1\r\nHost: 127.0.0.1:$ARGV[0]\r\n"
            . "Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n";
        for (1 .. 80) { print $s "[" x 100000 or last }' "$port"
    ;;
*)
    echo "There is no attack $attack." >&2
    exit 2
    ;;
esac
exit 0
