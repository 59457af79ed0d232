# Read by interactive bash. Yours to change: gpu-dev writes it once, when the home is new.
case $- in
*i*) ;;
*) return ;;
esac
PS1='\u@gpu-dev-${GPU_DEV_RESERVATION_ID:0:8}:\w\$ '
alias ls='ls --color=auto'
