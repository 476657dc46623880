//! The feature gates that kube-scheduler 1.36.4 takes on its command line, found by asking it about each.

/// Those that can be on or off.
pub(super) const FREE: &str = "\
    APIResponseCompression APIServerIdentity APIServingWithRoutine AllAlpha AllBeta AllowDNSOnlyNodeCSR \
    AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs \
    AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission \
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions \
    CRDObservedGenerationTracking CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart \
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC \
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook \
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz \
    ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules \
    ContainerStopSignals ContextualLogging CoordinatedLeaderElection CrossNamespaceVolumeDataSource \
    CustomCPUCFSQuotaPeriod DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules \
    DRADeviceTaints DRAExtendedResource DRAListTypeAttributes DRANodeAllocatableResources \
    DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus \
    DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRASchedulerFilterTimeout \
    DRAWorkloadResourceClaims DeclarativeValidationBeta DeclarativeValidationTakeover \
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs \
    EnvFiles EventedPLEG ExtendWebSocketsToKubelet GangScheduling GenericWorkload GracefulNodeShutdown \
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero HostnameOverride \
    ImageVolumeWithDigest InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling \
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory \
    InPlacePodVerticalScalingInitContainers InformerResourceVersion KMSv1 KubeletCrashLoopBackOffMax \
    KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletPodResourcesListUseActivePods \
    KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC \
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot \
    LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions LoggingBetaOptions \
    ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread \
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS \
    MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs \
    MutatingAdmissionPolicy NativeHistograms NodeDeclaredFeatures NominatedNodeNameForExpectation \
    OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime \
    PodAndContainerStatsFromCRI PodCertificateRequest PodDeletionCost PodLevelResourceManagers \
    PodLevelResources PodLogsQuerySplitStreams PodReadyToStartContainersCondition \
    PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets PreventStaticPodAPIReferences QOSReserved \
    ReduceDefaultCrashLoopBackOffDecay RelaxedServiceNameValidation ReloadKubeletServerCertificateFile \
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage \
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate RuntimeClassInImageCriApi \
    SELinuxMount SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ \
    ServiceAccountNodeAudienceRestriction ServiceCIDRStatusFieldWiping ShardedListAndWatch \
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob \
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet \
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI \
    StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation \
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics \
    TaintTolerationComparisonOperators TokenRequestServiceAccountUIDValidation \
    TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions \
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation \
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport \
    VolumeLimitScaling WatchCacheInitializationPostStartHook WatchList WatchListClient \
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadAwarePreemption \
    WorkloadWithJob";

/// Those that have become part of Kubernetes, and can no longer be off.
pub(super) const LOCKED_ON: &str = "\
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints \
    AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache \
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache \
    CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite \
    DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout \
    ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers \
    InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy \
    JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI \
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown \
    MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode \
    NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion \
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking \
    PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure \
    RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation \
    ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod \
    SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI \
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo \
    SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf \
    StructuredAuthenticationConfiguration SupplementalGroupsPolicy TopologyManagerPolicyOptions \
    UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay";

/// Those that are on their way out, and can no longer be on.
pub(super) const LOCKED_OFF: &str = "\
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC";
