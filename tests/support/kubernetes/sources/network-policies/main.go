// Network-policies enforces the NetworkPolicies of a cluster on one node, by kube-router's controller of them; its
// routes and services, and the libraries that they bring, would take minutes to compile. It goes on until it is
// told to end, and then takes its rules back.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	networking "k8s.io/api/networking/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := options.NewKubeRouterConfig()
	flag.StringVar(&config.Kubeconfig, "kubeconfig", "", "who asks the API server")
	flag.StringVar(&config.HostnameOverride, "node", "", "the node whose pods are meant")
	flag.StringVar(&config.ClusterIPCIDR, "services", "", "the network of services")
	flag.StringVar(&config.NodePortRange, "node-ports", "", "the ports of services on nodes")
	flag.Parse()
	stopped := make(chan struct{})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ended
		close(stopped)
	}()
	enforce(config, connect(config.Kubeconfig), stopped)
	new(netpol.NetworkPolicyController).Cleanup()
}

func connect(kubeconfig string) kubernetes.Interface {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func enforce(config *options.KubeRouterConfig, client kubernetes.Interface, stopped chan struct{}) {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	if err := policies.SetTransform(withoutIPv6); err != nil {
		log.Fatal(err)
	}
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{})
	if err != nil {
		log.Fatal(err)
	}
	pods.AddEventHandler(controller.PodEventHandler)
	namespaces.AddEventHandler(controller.NamespaceEventHandler)
	policies.AddEventHandler(controller.NetworkPolicyEventHandler)
	factory.Start(stopped)
	factory.WaitForCacheSync(stopped)
	health := make(chan *healthcheck.ControllerHeartbeat)
	go ignore(health)
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(health, stopped, &running)
	running.Wait()
}

// ignore hears what the controller would else wait to be rid of; whether it is well shows in its rules.
func ignore(health chan *healthcheck.ControllerHeartbeat) {
	for range health {
	}
}

// withoutIPv6 leaves out what this version of the controller would put into a set of IPv4 addresses, and then
// enforce nothing at all. The pods have no other addresses.
func withoutIPv6(object interface{}) (interface{}, error) {
	policy, is := object.(*networking.NetworkPolicy)
	if !is {
		return object, nil
	}
	var ingress []networking.NetworkPolicyIngressRule
	for _, rule := range policy.Spec.Ingress {
		peers := onlyIPv4(rule.From)
		// A rule without peers is for everybody: one that has lost them all is for nobody.
		if len(peers) == len(rule.From) || len(peers) > 0 {
			rule.From = peers
			ingress = append(ingress, rule)
		}
	}
	var egress []networking.NetworkPolicyEgressRule
	for _, rule := range policy.Spec.Egress {
		peers := onlyIPv4(rule.To)
		if len(peers) == len(rule.To) || len(peers) > 0 {
			rule.To = peers
			egress = append(egress, rule)
		}
	}
	policy.Spec.Ingress, policy.Spec.Egress = ingress, egress
	return policy, nil
}

func onlyIPv4(peers []networking.NetworkPolicyPeer) []networking.NetworkPolicyPeer {
	var kept []networking.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock == nil || !strings.Contains(peer.IPBlock.CIDR, ":") {
			kept = append(kept, peer)
		}
	}
	return kept
}
