# Says whether something takes connections: dial.sh ADDRESS PORT
if timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null; then
    echo reached
else
    echo closed
fi
