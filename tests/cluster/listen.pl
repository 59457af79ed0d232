# Takes connections on a port, in the background, and ends when it does: listen.pl PORT
use strict;
use warnings;
use IO::Socket::INET;

my $listener = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 16, ReuseAddr => 1) or die "$@\n";
exit 0 if fork;
open($_, '+<', '/dev/null') for (*STDIN, *STDOUT, *STDERR);
while (my $connection = $listener->accept) {
    close $connection;
}
